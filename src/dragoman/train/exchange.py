"""Settles how a run's ranks stay together, before its first step; `auto` chooses by measured compute and link."""

from dataclasses import asdict

from dragoman.dist.world import World
from dragoman.plan.exchange import Choice, choose, explain, facts_of, settled_sync
from dragoman.plan.traffic import Placement
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
        return Exchange(settled_sync(job.recipe.sync).model_dump(), 1, ["one machine: the exact sum costs little"])
    known = world.gather(_earlier(job))[0]
    if known is not None and known["num_hosts"] == num_hosts:
        return Exchange(**known)
    assert profile.compute is not None, "compute is measured before every run"
    assert profile.link is not None, "several hosts have a link"
    placement = Placement(num_hosts, world.size)
    facts = facts_of(profile.compute, profile.link, placement, job.cut_recipe.batch.num_microbatches)
    choice = choose(facts)
    settings = settled_sync(job.recipe.sync, choice.option).model_dump()
    return Exchange(settings, num_hosts, explain(choice, facts), {**asdict(facts), **_cost(choice)})


def _earlier(job: Job) -> dict[str, object] | None:
    manifest = read_manifest(job.folder) if job.folder.manifest_path.exists() else None
    return None if manifest is None or manifest.exchange is None else asdict(manifest.exchange)


def _cost(choice: Choice) -> dict[str, float]:
    return {
        "sent_bytes": choice.sent_bytes,
        "transfer_seconds": choice.transfer_seconds,
        "waiting_seconds": choice.waiting_seconds,
    }
