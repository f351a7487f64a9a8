"""The manifest of a run: what is known before its first step."""

import os
import platform
import subprocess
from collections import Counter
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
import torch

from dragoman import __version__
from dragoman.data.manifest import Manifest as DataManifest
from dragoman.data.shards import ShardSet
from dragoman.dist.card import card_speed, exchange_card
from dragoman.dist.processor import cpu_name
from dragoman.dist.world import World
from dragoman.run.reader import read_manifest
from dragoman.run.records import Attempt, DataSummary, Exchange, Host, Manifest, SideSize, manifest_from_dict
from dragoman.train.build import Built
from dragoman.train.job import Job, recipe_hash

PACKAGES = ("numpy", "sentencepiece", "sacrebleu", "safetensors")


def describe_run(job: Job, world: World, data: ShardSet, built: Built, exchange: Exchange, began: float) -> Manifest:
    """A fresh manifest, or the one of earlier attempts with this attempt added, which `began` at that moment."""
    hosts = describe_hosts(world)  # all ranks at once, before anything that one of them may refuse
    attempt = Attempt(job.attempt, began, job.command, world.size)
    earlier = _earlier(job, world)
    return Manifest(
        name=job.run.name,
        created=attempt.time if earlier is None else earlier.created,
        recipe=job.recipe.model_dump(),
        recipe_hash=recipe_hash(job.recipe),
        versions=_versions(),
        world_size=world.size,
        device=world.device.type,
        precision=built.precision,
        kernels=built.kernels,
        recomputes=job.recomputes,
        num_parameters=built.flat.weights.numel(),
        data=_summary(job.data, data.manifest),
        hosts=hosts,
        exchange=exchange,
        num_microbatches=job.cut_recipe.batch.num_microbatches,
        attempts=(*(() if earlier is None else earlier.attempts), attempt),
        git_commit=_git_commit(),
        price_per_hour=job.price_per_hour,
    )


def _earlier(job: Job, world: World) -> Manifest | None:
    """Rank 0's: a host that was away for a while knows fewer attempts."""
    known = read_manifest(job.folder) if world.is_first and job.folder.manifest_path.exists() else None
    told = world.gather(None if known is None else asdict(known))[0]
    return None if told is None else manifest_from_dict(told)


def _versions() -> dict[str, str]:
    packages = {name: metadata.version(name) for name in PACKAGES}
    return {"dragoman": __version__, "python": platform.python_version(), "torch": torch.__version__, **packages}


def describe_hosts(world: World) -> tuple[Host, ...]:
    """Every machine once, in the order of ranks."""
    told = world.gather(_host(world))
    counts = Counter(values["name"] for values in told)
    found = {
        values["name"]: Host(**{**values, "gpus": tuple(values["gpus"]), "num_ranks": counts[values["name"]]})
        for values in told
    }
    return tuple(found.values())


def _host(world: World) -> dict[str, Any]:
    gpus = tuple(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))
    cores = os.cpu_count() or 0
    card = exchange_card()
    speed = None if card is None else card_speed(card)
    memory = psutil.virtual_memory().total
    return asdict(Host(world.host, cpu_name(), cores, memory, gpus, interface=card, card_bits_per_second=speed))


def _git_commit() -> str | None:
    """Of the code that runs, where it runs from a checkout."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "-C", str(here), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def _summary(path: Path, manifest: DataManifest) -> DataSummary:
    def total(field: str) -> int:
        return sum(getattr(corpus, field) for corpus in manifest.corpora)

    def side(name: str, language: str) -> SideSize:
        return SideSize(
            language=language,
            raw_bytes=total(f"raw_{name}_bytes"),
            raw_lines=total("raw_lines"),
            clean_bytes=total(f"clean_{name}_bytes"),
            clean_lines=total("clean_lines"),
            bpe_bytes=total(f"bpe_{name}_bytes"),
            num_tokens=total(f"{name}_tokens"),
        )

    rejected = Counter[str]()
    for corpus in manifest.corpora:
        rejected.update({reason: entry.num_pairs for reason, entry in corpus.rejected.items()})
    return DataSummary(
        path=str(path.absolute()),
        fingerprint=manifest.fingerprint,
        languages=manifest.languages,
        num_pairs=manifest.num_train_pairs,
        source=side("source", manifest.source_language),
        target=side("target", manifest.target_language),
        corpora={corpus.name: corpus.train_pairs for corpus in manifest.corpora},
        dev_sets={entry.name: entry.num_pairs for entry in manifest.dev},
        test_sets={entry.name: entry.num_pairs for entry in manifest.test},
        vocab_size=manifest.vocab.size,
        rejected=dict(rejected),
        removes_overlap=manifest.settings.data.remove_overlap,
    )
