"""Settles how a run's ranks stay together, before its first step; `auto` chooses by measured compute and link."""

from dataclasses import asdict

from dragoman.config import SyncConfig
from dragoman.dist.world import World
from dragoman.plan.exchange import Choice, Facts, choose, explain
from dragoman.run.promise import Profile
from dragoman.run.reader import read_manifest
from dragoman.run.records import Exchange
from dragoman.train.job import Job


def settle_exchange(job: Job, world: World, profile: Profile) -> Exchange:
    """The recipe's method; where it says auto, what an earlier attempt on as many hosts found, or a fresh choice."""
    num_hosts = len(profile.hosts)
    if job.recipe.sync.method != "auto":
        return Exchange(
            job.recipe.sync.model_dump(), num_hosts, [f"exchange: {job.recipe.sync.method}, as the recipe says"]
        )
    if num_hosts == 1:
        return Exchange(_settings(job.recipe.sync, "dense", "fp32"), 1, ["one machine: the exact sum costs little"])
    known = world.gather(_earlier(job))[0]
    if known is not None and known["num_hosts"] == num_hosts:
        return Exchange(**known)
    facts = _facts(job, world, profile)
    choice = choose(facts)
    option = choice.option
    settings = _settings(job.recipe.sync, option.method, option.precision, option.every_steps)
    return Exchange(settings, num_hosts, explain(choice, facts), {**asdict(facts), **_cost(choice)})


def _facts(job: Job, world: World, profile: Profile) -> Facts:
    compute, link = profile.compute, profile.link
    assert compute is not None, "compute is measured before every run"
    assert link is not None, "several hosts have a link"
    pieces = -(-job.recipe.batch.num_microbatches // world.size)
    return Facts(
        num_parameters=compute.num_parameters,
        num_hosts=len(profile.hosts),
        num_ranks=world.size,
        compute_seconds=pieces * (compute.forward_seconds + compute.backward_seconds),
        overlap_seconds=compute.backward_seconds,
        bytes_per_second=link.bytes_per_second,
        latency_seconds=link.latency_seconds,
    )


def _earlier(job: Job) -> dict[str, object] | None:
    manifest = read_manifest(job.folder) if job.folder.manifest_path.exists() else None
    return None if manifest is None or manifest.exchange is None else asdict(manifest.exchange)


def _settings(wanted: SyncConfig, method: str, precision: str, every_steps: int = 1) -> dict[str, object]:
    changes = {"method": method, "precision": precision}
    if method == "diloco":
        changes |= {"every_steps": every_steps, "delay_steps": 1}
    return SyncConfig.model_validate({**wanted.model_dump(), **changes}).model_dump()


def _cost(choice: Choice) -> dict[str, float]:
    return {
        "sent_bytes": choice.sent_bytes,
        "transfer_seconds": choice.transfer_seconds,
        "waiting_seconds": choice.waiting_seconds,
    }
