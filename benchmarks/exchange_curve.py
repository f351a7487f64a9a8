"""Draws what `exchange_quality.py` measured: BLEU on Multi30k against the bytes that a rank sends in a step.

python benchmarks/exchange_curve.py benchmarks/results/DATE-exchange-quality.jsonl docs/bleu-against-bytes.svg
"""

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import altair as alt

CORPUS = "m30k"
REPLICAS, GRADIENTS = "replicas (diloco)", "gradients"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("raw", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    draw(points(read_runs(options.raw))).save(str(options.out))


def read_runs(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Runs of one corpus by method: `diloco-sign@4` -> its seeds."""
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in path.read_text().splitlines():
        if line.startswith("{"):
            run = json.loads(line)
            corpus, method, *_settings, _seed = run["name"].split()
            if corpus == CORPUS and "bleu" in run:
                found[method].append(run)
    return dict(found)


def points(runs: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    # One rank stands for dense in fp32, as the sum is exact; two would send twice what bf16 does.
    dense_bytes = 2 * runs["dense-bf16"][0]["sent_bytes_per_step"]
    return [
        {
            "method": method,
            "family": REPLICAS if method.startswith("diloco") else GRADIENTS,
            "megabytes": (seeds[0]["sent_bytes_per_step"] or dense_bytes) / 1e6,
            "bleu": statistics.mean(seed["bleu"] for seed in seeds),
            "low": statistics.mean(seed["bleu_interval"][0] for seed in seeds),
            "high": statistics.mean(seed["bleu_interval"][1] for seed in seeds),
        }
        for method, seeds in runs.items()
    ]


def draw(rows: list[dict[str, Any]]) -> Any:
    x = alt.X(
        "megabytes:Q", scale=alt.Scale(type="log", domain=[0.02, 60]), title="MB a rank sends in a step (logarithmic)"
    )
    title = "BLEU on Multi30k after 1,200 steps; bar: 95 % interval"
    y = alt.Y("bleu:Q", scale=alt.Scale(zero=False), title=title)
    colour = alt.Color("family:N", title=None, scale=alt.Scale(range=["#2563a8", "#c8622d"]))
    base = alt.Chart(alt.Data(values=rows))
    bars = base.mark_rule(opacity=0.4).encode(x=x, y=alt.Y("low:Q", title=title), y2="high:Q", color=colour)
    dots = base.mark_point(filled=True, size=70).encode(x=x, y=y, color=colour)
    # Neighbours are close on this axis: slanted names, one kind above its points and one below.
    names = [
        base.transform_filter(alt.datum.family == family)
        .mark_text(align="left", dx=8, angle=angle, fontSize=11)
        .encode(x=x, y=y, text="method:N", color=colour)
        for family, angle in ((REPLICAS, 325), (GRADIENTS, 35))
    ]
    return alt.layer(bars, dots, *names).properties(width=720, height=320, background="white")


if __name__ == "__main__":
    main()
