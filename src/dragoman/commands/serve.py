"""`dragoman serve`: models over HTTP, with LibreTranslate's API and a page."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dragoman.errors import DragomanError

PORT = 5000


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...", help="Exports, runs or checkpoints, one a pair of languages.", show_default=False
        ),
    ],
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; 0.0.0.0 is reached from everywhere.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 takes a free one.")] = PORT,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads of a model.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; the GPU where there is one.")] = None,
    api_keys: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Only who has one of these keys is answered; one a line.")
    ] = None,
    rate_limit: Annotated[
        str | None, typer.Option(metavar="N/min", help="Requests of one key or address; also N/s, N/h.")
    ] = None,
    cors: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="Pages of this origin may ask; * for all. Repeatable.")
    ] = None,
    max_queue: Annotated[int, typer.Option(min=1, help="Sentences of one model that wait at most.")] = 2_000,
    max_characters: Annotated[int, typer.Option(min=1, help="Characters of one request.")] = 100_000,
    timeout: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Time for a request.")] = 30.0,
    browser: Annotated[bool, typer.Option("--browser", help="Open the page in the web browser.")] = False,
    bench: Annotated[
        bool, typer.Option("--bench", help="Measure instead: this server beside CTranslate2 alone, as JSON.")
    ] = False,
    bench_source: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --bench: sentences, one a line.")
    ] = None,
) -> None:
    """Serve models over HTTP until Ctrl-C."""
    if bench:
        _bench(models, bench_source, threads, device)
        return
    if bench_source is not None:
        raise DragomanError("--bench-source is for --bench, which is not there", "add --bench, or leave it out")
    from tempfile import TemporaryDirectory

    from dragoman.allocator import keep_freed_memory
    from dragoman.web.listening import listen
    from dragoman.web.serve.conversion import as_export
    from dragoman.web.serve.keys import Keys, read_keys
    from dragoman.web.serve.limits import Limits
    from dragoman.web.serve.metrics import Metrics
    from dragoman.web.serve.models import open_models
    from dragoman.web.serve.origins import checked_origins
    from dragoman.web.serve.rate import RateLimit, parse_rate
    from dragoman.web.serve.server import serve as run
    from dragoman.web.serve.service import Service

    keep_freed_memory()
    limits = Limits(max_queue=max_queue, max_characters=max_characters, timeout_seconds=timeout)
    keys = read_keys(api_keys) if api_keys else Keys()
    rate = RateLimit(parse_rate(rate_limit) if rate_limit else None)
    origins = checked_origins(cors or [])
    listening = listen(host, port)
    metrics = Metrics()
    with TemporaryDirectory(prefix="dragoman-serve-") as folder:
        exports = [as_export(model, Path(folder), typer.echo) for model in models]
        opened = open_models(exports, limits, device, threads, metrics.count_batch)

    def say(address: str) -> None:
        typer.echo(f"{', '.join(model.name for model in opened.values())} on {address}")
        typer.echo("Ctrl-C ends it")
        if browser:
            import webbrowser

            webbrowser.open(address)

    run(Service(opened, limits, keys, rate, metrics), listening, host, origins, say)


def _bench(models: list[str], source: Path | None, threads: int | None, device: str | None) -> None:
    import json
    from tempfile import TemporaryDirectory

    from dragoman.web.serve.bench import bench
    from dragoman.web.serve.conversion import as_export

    if len(models) > 1:
        raise DragomanError(f"--bench measures one model, not {len(models)}", "name one of them")
    given = (("--threads", threads), ("--device", device))
    options = [str(part) for name, value in given if value is not None for part in (name, value)]
    with TemporaryDirectory(prefix="dragoman-serve-") as folder:
        export = as_export(models[0], Path(folder), partial(typer.echo, err=True))
        typer.echo(json.dumps(bench(export, source, options, threads, device)))
