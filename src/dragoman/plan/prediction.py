"""The promise of a run, made before it starts: everything the other files of this folder know, as one `Prediction`."""

import time

from dragoman.plan.checkpoint import checkpoint_files, disk_bytes, num_saves
from dragoman.plan.cost import cost_of
from dragoman.plan.hints import link_hints
from dragoman.plan.setting import Setting, settled
from dragoman.plan.split import StepPlan, on_one_host, plan_step
from dragoman.plan.timeline import num_evaluations, paid_seconds, plan_timeline
from dragoman.plan.traffic import method_name
from dragoman.plan.whatif import break_even, what_ifs
from dragoman.run.promise import Cost, Prediction
from dragoman.units import format_bit_rate, format_bytes, format_money, format_seconds


def predict_run(setting: Setting) -> Prediction:
    """Step, timeline, cost, checkpoint and what-ifs. `auto` is settled as `train` would settle it."""
    setting = settled(setting)
    step = plan_step(setting)
    files = checkpoint_files(setting, written=setting.given)
    timeline = plan_timeline(setting, step, sum(files.values()))
    total = sum(stage.seconds for stage in timeline)
    training = next(stage.seconds for stage in timeline if stage.name == "train")
    saves = num_saves(setting, step.split.total_seconds)
    disk = disk_bytes(setting, files, saves, num_evaluations(setting), training)
    hosts = setting.placement.num_hosts
    sent = step.traffic.sent_bytes
    cost = cost_of(setting.prices, paid_seconds(timeline), hosts * sent * setting.num_steps, hosts * disk)
    rate = setting.link.bytes_per_second if setting.link is not None and hosts > 1 else None
    tokens = setting.text.target_tokens
    return Prediction(
        time=time.time(),
        is_measured=setting.is_measured,
        recipe=setting.recipe.name,
        num_hosts=hosts,
        num_ranks=setting.placement.num_ranks,
        method=method_name(setting.recipe.sync),
        num_steps=setting.num_steps,
        step=step.split,
        low_step_seconds=step.low_seconds,
        high_step_seconds=step.high_seconds,
        sent_bytes=sent,
        formula=step.traffic.formula,
        bytes_per_second=rate,
        floor_seconds=None if rate is None else sent / rate,
        train_seconds=training,
        total_seconds=total,
        timeline=timeline,
        num_epochs=setting.num_steps * setting.recipe.batch.target_tokens / tokens if tokens else None,
        cost=cost,
        price_per_hour=setting.prices.per_hour,
        checkpoint_files=files,
        disk_bytes=disk,
        single_host_step_seconds=plan_step(on_one_host(setting)).split.total_seconds,
        what_if=what_ifs(setting),
        break_even=break_even(setting),
        line=_line(setting, step, total, cost),
        notes=setting.notes,
        num_microbatches=setting.recipe.batch.num_microbatches,
    )


def _line(setting: Setting, step: StepPlan, total_seconds: float, cost: Cost) -> str:
    """All of it in one line."""
    parts = [
        f"{_plain_seconds(step.split.total_seconds)} a step",
        _hours(total_seconds),
        *([] if cost.total is None else [format_money(cost.total, cost.currency)]),
    ]
    if setting.link is None or setting.placement.num_hosts == 1:
        return f"one machine: {', '.join(parts)}"
    # Never 100 %: some of every step computes.
    parts.append(f"{min(99, round(100 * step.split.waiting_share))} % waiting")
    over = f" over {_one_of(setting.link.interfaces)}" if setting.link.interfaces else ""
    speed = format_bit_rate(8 * setting.link.bytes_per_second)
    head = f"{format_bytes(step.traffic.sent_bytes)}/step each way{over} at {speed}"
    return "; ".join([f"{head}: {', '.join(parts)}", *link_hints(setting.link)])


def _one_of(interfaces: dict[str, str]) -> str:
    return " and ".join(sorted(set(interfaces.values())))


def _plain_seconds(seconds: float) -> str:
    return format_seconds(seconds) if seconds >= 60 else f"{seconds:.2g} s"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.0f} h" if seconds >= 36_000 else format_seconds(seconds)
