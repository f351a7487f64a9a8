"""What is measured and promised before the first step of a run: `profile.json`, `prediction.json` and one line."""

import time
from collections.abc import Callable
from dataclasses import asdict, replace

import torch
from pydantic import TypeAdapter

from dragoman.config import SyncConfig
from dragoman.data.batches import BatchPlan
from dragoman.data.shards import ShardSet
from dragoman.dist.probe import measure_link
from dragoman.dist.world import World
from dragoman.errors import CheckFailed
from dragoman.plan.prediction import predict_run
from dragoman.plan.setting import Prices, setting_of_profile
from dragoman.plan.text import text_of_manifest
from dragoman.run.consent import ask
from dragoman.run.promise import HostProfile, Prediction, Profile, find_promise, write_promise
from dragoman.run.records import Exchange
from dragoman.train.build import Built
from dragoman.train.describe import describe_hosts
from dragoman.train.job import Job, recipe_hash
from dragoman.train.optim import Optimizer
from dragoman.train.passes import Passes
from dragoman.train.profile import measure_compute

# Less than the ranks wait for each other.
ANSWER_SECONDS = 480.0


def measure_run(job: Job, world: World, built: Built, passes: Passes, optimizer: Optimizer, plan: BatchPlan) -> Profile:
    """Compute and link of these ranks; where an earlier attempt measured the same, or a host more, what it found:
    whoever goes on without a lost host has waited long enough."""
    hosts = tuple(
        HostProfile(host.name, host.cpu, host.num_cores, host.memory_bytes, host.gpus, host.num_ranks)
        for host in describe_hosts(world)
    )
    known = _earlier(job, world)
    if known is not None and set(hosts) <= set(known.hosts) and _is_of(known, job, world.device):
        return known if known.hosts == hosts else replace(known, hosts=hosts, link=known.link if hosts[1:] else None)
    compute = measure_compute(
        world, job.cut_recipe, built, passes, optimizer, plan, methods="wanted" if len(hosts) > 1 else "none"
    )
    link = measure_link(world) if len(hosts) > 1 else None
    return Profile(time.time(), hosts, link, compute)


def _earlier(job: Job, world: World) -> Profile | None:
    """Rank 0's word: only its run folder knows earlier attempts."""
    known = find_promise(job.folder.profile_path, Profile) if world.is_first else None
    told = world.gather(None if known is None else asdict(known))[0]
    return None if told is None else TypeAdapter(Profile).validate_python(told)


def _is_of(profile: Profile, job: Job, device: torch.device) -> bool:
    compute = profile.compute
    is_same_device = compute is not None and (compute.device == "cpu") == (device.type == "cpu")
    if compute is None or not is_same_device or compute.recipe_hash != recipe_hash(job.recipe):
        return False
    return compute.num_microbatches == job.cut_recipe.batch.num_microbatches


def promise_run(job: Job, data: ShardSet, profile: Profile, exchange: Exchange, say: Callable[[str], None]) -> None:
    """Write both files, say the line, and ask whether to go on where somebody can answer. For rank 0."""
    sync = SyncConfig.model_validate(exchange.settings)
    recipe = job.cut_recipe.model_copy(update={"sync": sync})
    prices = Prices(per_hour=job.price_per_hour)
    prediction = predict_run(setting_of_profile(recipe, profile, text_of_manifest(data.manifest), prices))
    known = find_promise(job.folder.profile_path, Profile)
    if known is None or known.time != profile.time:  # a part of what was measured takes nothing's place
        write_promise(job.folder.profile_path, profile)
    write_promise(job.folder.prediction_path, prediction)
    say(prediction.line)
    _refuse_waiting(job, prediction)
    if job.asks and prediction.num_hosts > 1:
        answer = ask(job.folder, "Continue?", ANSWER_SECONDS)
        if not answer:
            silence = "nobody answered" if answer is None else "the answer was no"
            raise CheckFailed(f"not begun: {silence}", "the same command asks again; --yes does not ask")


def _refuse_waiting(job: Job, prediction: Prediction) -> None:
    waiting = prediction.step.waiting_share
    if job.most_waiting is not None and waiting > job.most_waiting:
        raise CheckFailed(
            f"not begun: {waiting:.0%} of a step would be waiting, more than {job.most_waiting:.0%}",
            "`dragoman plan RECIPE --profile RUN` shows what would help",
        )
