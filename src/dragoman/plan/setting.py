"""Everything a prediction is made from, in one place: recipe, machines, link, text, prices. No arithmetic on times.

`train` and `plan` build it from a profile, `plan` also from machines that are not rented yet.
"""

from dataclasses import dataclass, replace

from dragoman.config import CutRecipe, Recipe, SyncConfig
from dragoman.errors import DragomanError
from dragoman.model.size import size_of
from dragoman.plan.compute import Range, estimate, expected_precision, fitted
from dragoman.plan.exchange import choose, facts_of, settled_sync
from dragoman.plan.gpus import Gpu, find_gpu
from dragoman.plan.machines import Machines
from dragoman.plan.microbatches import choose_number, cut, needed_bytes, value_bytes_of
from dragoman.plan.shapes import Parameter, parameters_of
from dragoman.plan.text import TextFacts, text_of_recipe
from dragoman.plan.traffic import Placement
from dragoman.run.promise import ComputeProfile, LinkProfile, Profile
from dragoman.units import format_bytes

USUAL_LATENCY_SECONDS = 0.0005  # of a sum of one number between hosts of one data centre
USUAL_DISK_RATE = 200e6
FREE_SHARE = 0.9  # of the memory that a data sheet names
# How far a table's link may be off, either way; a profile's whole step time may be off by as much as ACCURACY.
LINK_RANGE = (0.92, 1.04)
ACCURACY = 0.10


@dataclass(frozen=True, slots=True)
class Prices:
    """None: not known. In one currency."""

    per_hour: float | None = None  # of all machines together
    per_gb: float | None = None  # of traffic that leaves a host
    per_gb_month: float | None = None  # of disk
    currency: str = "$"


NO_PRICES = Prices()


@dataclass(frozen=True, slots=True)
class Setting:
    """One run on one set of machines."""

    recipe: CutRecipe  # its `sync` says what is exchanged; auto is settled by `settled`
    given: Recipe  # as it was asked for, auto and all
    text: TextFacts
    placement: Placement
    compute: Range
    link: LinkProfile | None  # None: one host
    prices: Prices
    num_steps: int
    machines: str  # in words
    is_measured: bool  # compute and link come from a profile of this recipe
    disk_bytes_per_second: float = USUAL_DISK_RATE
    is_gpu: bool = True
    free_bytes: int | None = None  # of a GPU's memory, for training
    value_bytes: int = 4  # of an activation there
    notes: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return parameters_of(self.recipe.model, self.text.vocab_size)

    @property
    def pieces_per_rank(self) -> int:
        """Microbatches of the rank that has most."""
        return -(-self.recipe.batch.num_microbatches // self.placement.num_ranks)


def setting_of_machines(
    recipe: Recipe,
    machines: Machines,
    link_bytes_per_second: float | None = None,
    text: TextFacts | None = None,
    prices: Prices = NO_PRICES,
    num_steps: int | None = None,
) -> Setting:
    """Before renting: compute from the table of GPUs, the link as it is sold."""
    text = text or text_of_recipe(recipe)
    if machines.num_hosts > 1 and link_bytes_per_second is None:
        raise DragomanError(f"{machines.num_hosts} hosts are joined by a link", "say how fast it is: --link 1gbit")
    link = None
    if link_bytes_per_second is not None:
        link = LinkProfile(link_bytes_per_second, USUAL_LATENCY_SECONDS)
    own = _cut_for(recipe, text.vocab_size, machines)
    return Setting(
        recipe=own,
        given=recipe,
        text=text,
        placement=machines.placement,
        compute=estimate(own, text.vocab_size, machines),
        link=link,
        prices=prices,
        num_steps=num_steps or recipe.train.max_steps,
        machines=machines.name,
        is_measured=False,
        is_gpu=machines.gpu is not None,
        free_bytes=_free_bytes(machines),
        value_bytes=_value_bytes(recipe, machines.gpu),
        notes=(*_machine_notes(own, text.vocab_size, machines), *_text_notes(text)),
    )


def setting_of_profile(
    recipe: Recipe,
    profile: Profile,
    text: TextFacts | None = None,
    prices: Prices = NO_PRICES,
    num_steps: int | None = None,
) -> Setting:
    """From what was measured; what the profile lacks is estimated, and then the setting is not measured."""
    text = text or _expected_text(recipe, profile.compute)
    num_hosts = max(1, len(profile.hosts))
    placement = Placement(num_hosts, sum(host.num_ranks for host in profile.hosts) or 1)
    if num_hosts > 1 and profile.link is None:
        raise DragomanError(
            f"the profile names {num_hosts} hosts and no link between them", "measure it: `dragoman doctor --hosts ...`"
        )
    notes = _text_notes(text)
    if profile.compute is None:
        machines = _machines_of(profile, placement)
        own, free_bytes = _cut_for(recipe, text.vocab_size, machines), _free_bytes(machines)
        value_bytes = _value_bytes(recipe, machines.gpu)
        compute, is_fit = estimate(own, text.vocab_size, machines), False
        notes += ("the profile has no compute time: it is estimated from the table of GPUs",)
    else:
        own = _cut_as_timed(recipe, text.vocab_size, profile.compute, placement.num_ranks)
        free_bytes, value_bytes = profile.compute.gpu_free_bytes, _timed_bytes(profile.compute)
        timed, is_fit = fitted(profile.compute, own, text.vocab_size)
        compute = Range(timed, timed, timed)
        if not is_fit:
            notes += ("the profile timed another model or batch: its compute time is scaled to this recipe",)
    disks = [host.disk_bytes_per_second for host in profile.hosts if host.disk_bytes_per_second]
    gpus = sorted({gpu for host in profile.hosts for gpu in host.gpus})
    return Setting(
        recipe=own,
        given=recipe,
        text=text,
        placement=placement,
        compute=compute,
        link=profile.link if num_hosts > 1 else None,
        prices=_with_host_prices(prices, profile),
        num_steps=num_steps or recipe.train.max_steps,
        machines=_described(profile, placement, gpus),
        is_measured=is_fit,
        disk_bytes_per_second=min(disks, default=USUAL_DISK_RATE),
        is_gpu=bool(gpus),
        free_bytes=free_bytes,
        value_bytes=value_bytes,
        notes=notes,
    )


def _cut_for(recipe: Recipe, vocab_size: int, machines: Machines) -> CutRecipe:
    """With as many microbatches as `train` would take there, by the table of GPUs."""
    value_bytes = _value_bytes(recipe, machines.gpu)
    num_ranks = machines.placement.num_ranks
    return cut(recipe, choose_number(recipe, vocab_size, num_ranks, _free_bytes(machines), value_bytes))


def _free_bytes(machines: Machines) -> int | None:
    return None if machines.gpu is None else round(FREE_SHARE * machines.gpu.memory_bytes)


def _value_bytes(recipe: Recipe, gpu: Gpu | None) -> int:
    return value_bytes_of(expected_precision(recipe, gpu), is_fused=recipe.train.kernels == "auto")


def _timed_bytes(timed: ComputeProfile) -> int:
    return value_bytes_of(timed.precision, is_fused=timed.kernels == "fused")


def _cut_as_timed(recipe: Recipe, vocab_size: int, timed: ComputeProfile, num_ranks: int) -> CutRecipe:
    """With as many microbatches as the profile had; of another model or batch, as its machines have memory for."""
    is_same = (timed.num_parameters, timed.target_tokens) == (
        size_of(recipe.model, vocab_size).num_parameters,
        recipe.batch.target_tokens,
    )
    if recipe.batch.num_microbatches == "auto" and is_same:
        return cut(recipe, timed.num_microbatches)
    return cut(recipe, choose_number(recipe, vocab_size, num_ranks, timed.gpu_free_bytes, _timed_bytes(timed)))


def _expected_text(recipe: Recipe, compute: ComputeProfile | None) -> TextFacts:
    """Where no data folder is named: a profile of this very model knows its vocabulary; else the recipe says it."""
    text = text_of_recipe(recipe)
    if compute is None or not compute.vocab_size:
        return text
    is_same = size_of(recipe.model, compute.vocab_size).num_parameters == compute.num_parameters
    return replace(text, vocab_size=compute.vocab_size) if is_same else text


def with_sync(setting: Setting, sync: SyncConfig) -> Setting:
    """The same run with another exchange."""
    return replace(setting, recipe=setting.recipe.model_copy(update={"sync": sync}))


def settled(setting: Setting) -> Setting:
    """With `auto` decided, as `train` would decide it."""
    sync = setting.recipe.sync
    if sync.method != "auto":
        return setting
    if setting.placement.num_hosts == 1 or setting.link is None:
        return with_sync(setting, settled_sync(sync))
    num_microbatches = setting.recipe.batch.num_microbatches
    facts = facts_of(setting.compute.middle, setting.link, setting.placement, num_microbatches)
    return with_sync(setting, settled_sync(sync, choose(facts).option))


def _machines_of(profile: Profile, placement: Placement) -> Machines:
    first = profile.hosts[0] if profile.hosts else None
    if first is None or not first.gpus:
        return Machines(placement.num_hosts, placement.ranks_per_host, None, first.num_cores if first else 1)
    return Machines(placement.num_hosts, placement.ranks_per_host, find_gpu(first.gpus[0]))


def _with_host_prices(prices: Prices, profile: Profile) -> Prices:
    """The hosts' own prices where nothing else was said and all of them have one."""
    own = [host.price_per_hour for host in profile.hosts if host.price_per_hour is not None]
    if prices.per_hour is not None or not own or len(own) < len(profile.hosts):
        return prices
    return replace(prices, per_hour=sum(own))


def _described(profile: Profile, placement: Placement, gpus: list[str]) -> str:
    names = ", ".join(host.name for host in profile.hosts) or "this machine"
    ranks = f"{placement.num_ranks} rank{'s' if placement.num_ranks > 1 else ''}"
    return f"{names}: {ranks} on {' and '.join(gpus) or 'processors'}"


def _machine_notes(recipe: CutRecipe, vocab_size: int, machines: Machines) -> tuple[str, ...]:
    gpu = machines.gpu
    if gpu is None:
        return (f"compute is estimated for {machines.num_cores} cores a host: a wide range",)
    notes = [f"compute is estimated from FLOPs and {gpu.name}'s data sheet: `dragoman doctor` measures it"]
    if not gpu.has_bf16 and recipe.train.precision == "auto":
        notes.append(f"{gpu.name} has no bf16: computed in fp16 with a loss scale")
    if not gpu.has_bf16 and recipe.train.precision == "bf16":
        notes.append(f"{gpu.name} has no bf16: the figures are those of mixed precision in fp16")
    needed = needed_bytes(recipe, vocab_size, recipe.batch.num_microbatches, _value_bytes(recipe, gpu))
    if needed > FREE_SHARE * gpu.memory_bytes:
        notes.append(
            f"training needs about {format_bytes(needed)} of a GPU's memory and {gpu.name} has "
            f"{format_bytes(gpu.memory_bytes)}: raise batch.num_microbatches"
        )
    return tuple(notes)


def _text_notes(text: TextFacts) -> tuple[str, ...]:
    if text.is_known:
        return ()
    if text.num_pairs:
        return (
            f"no data folder: {text.num_pairs:,} pairs, as the recipe expects, of {text.tokens_per_pair:.0f} "
            "target tokens, a usual length",
        )
    return ("no data folder: how much text there is, and so the epochs, is not known",)
