"""Question 4: were the GPUs, or else the processors, fully used. Busy, computing and FLOPs are three things."""

from dataclasses import dataclass

import numpy as np

from dragoman.diagnose.facts import Facts
from dragoman.diagnose.finding import QUESTIONS, Answer, Confidence, Number, not_recorded
from dragoman.diagnose.link import is_training
from dragoman.diagnose.split import Split
from dragoman.diagnose.statistics import finite_mean
from dragoman.diagnose.wording import flops_text, joined, percent
from dragoman.errors import DragomanError
from dragoman.model.size import size_of
from dragoman.plan.gpus import FP32_EFFICIENCY, find_gpu

MOSTLY = 0.8  # of a step
MOST_POSSIBLE = 1.1  # of the peak: more says that the peak is wrong, so nothing is said
TIMINGS = "The share of a step spent computing: `dragoman train` writes it to the timing files."
PEAK = "The peak of this machine: `dragoman doctor` measures it."


@dataclass(frozen=True)
class Use:
    """None is what is not known; shares are 0 to 1."""

    is_gpu: bool
    busy: float | None  # as the driver or the kernel counts it
    computing: float | None  # of a step: forward, backward, optimizer
    flops_per_second: float | None  # of the model, all ranks
    peak_flops: float | None  # of one rank
    is_peak_measured: bool
    usual: tuple[float, float] | None  # model FLOPs over peak that such hardware reaches
    num_ranks: int

    @property
    def flops_share(self) -> float | None:
        if not self.flops_per_second or not self.peak_flops:
            return None
        share = self.flops_per_second / (self.num_ranks * self.peak_flops)
        return share if share <= MOST_POSSIBLE else None


def use_of(facts: Facts) -> Use:
    is_gpu = facts.run.manifest.device.startswith("cuda") or any(host.gpus for host in facts.run.manifest.hosts)
    peak, is_measured, usual = _peak(facts, is_gpu)
    return Use(
        is_gpu=is_gpu,
        busy=_busy(facts, is_gpu),
        computing=facts.split.computing_share if facts.split and facts.split.step_seconds > 0 else None,
        flops_per_second=_flops_per_second(facts),
        peak_flops=peak,
        is_peak_measured=is_measured,
        usual=usual,
        num_ranks=facts.num_ranks,
    )


def answer_use(facts: Facts) -> Answer:
    """4. Utilisation, share of the step spent computing, and model FLOPs over peak, kept apart."""
    use = use_of(facts)
    if use.busy is None and use.computing is None:
        return not_recorded(4, "Neither the hosts' samples nor the timing of the steps is there.", TIMINGS)
    told = [] if use.is_gpu else ["The run had no GPU: this answers for the processors that computed."]
    told += [text for text in (_computing(use, facts.split), _busyness(use), _flops(use)) if text]
    confidence: Confidence = "high" if use.computing is not None and use.flops_share is not None else "medium"
    return Answer(
        number=4,
        question=QUESTIONS[3],
        verdict=use_verdict(use),
        sentences=" ".join(told),
        numbers=tuple(_numbers(use)),
        chart="gpu",
        evidence="Computing from the timing files (steady steps, all ranks); busy from the samples of every second of "
        "training; model FLOPs from the recipe's matrices times the target tokens per second.",
        confidence=confidence if use.computing is not None else "low",
        missing=TIMINGS if use.computing is None else PEAK if use.flops_share is None else _samples_missing(use),
    )


def use_verdict(use: Use) -> str:
    share = use.flops_share
    if use.computing is None:
        return "Busy; whether used is not recorded." if (use.busy or 0) >= MOSTLY else "No."
    if use.computing >= MOSTLY:
        if share is None:
            return "Yes, they computed."
        is_slow = use.usual is not None and share < 0.7 * use.usual[0]
        return f"Computing, at {percent(share)} of the peak." if is_slow else "Yes."
    if use.computing >= 0.5:
        return "Not fully."
    return "Busy, not used." if (use.busy or 0) >= MOSTLY else "No."


def _computing(use: Use, split: Split | None) -> str:
    if use.computing is None or split is None:
        return ""
    waits = [
        (split.transfer_seconds, "waiting for the exchange"),
        (split.waiting_seconds, "waiting for the slowest rank"),
        (split.data_seconds, "waiting for data"),
        (split.other_seconds, "everything else"),
    ]
    named = [f"{percent(split.share(value))} {name}" for value, name in waits if split.share(value) >= 0.02]
    text = f"{percent(use.computing)} of a mean step was computing (forward, backward, optimizer)"
    return f"{text}, {joined(named)}." if named else f"{text}."


def _busyness(use: Use) -> str:
    if use.busy is None:
        return ""
    if not use.is_gpu:
        return f"All cores of the hosts together were {percent(use.busy)} busy, whatever ran on them."
    text = f"The driver's utilisation read {percent(use.busy)}"
    if use.busy > (use.computing or 0) + 0.15:
        return f"{text}: it counts a GPU that waits inside an exchange as busy, and full memory is no use either."
    return f"{text}; it says that kernels ran, not how well."


def _flops(use: Use) -> str:
    if use.flops_share is None or use.peak_flops is None or use.flops_per_second is None:
        return ""
    peak = f"{flops_text(use.peak_flops)} {'measured' if use.is_peak_measured else 'on the data sheet'}"
    text = f"The model's arithmetic ran at {flops_text(use.flops_per_second)}, {percent(use.flops_share)} of "
    text += f"the peak ({use.num_ranks} x {peak})" if use.num_ranks > 1 else f"the peak ({peak})"
    if use.usual is None:
        return text + "."
    low, high = use.usual
    return f"{text}; a model of this kind reaches {percent(low)} to {percent(high)}."


def _numbers(use: Use) -> list[Number]:
    busy, computing, share = use.busy, use.computing, use.flops_share
    return [
        *([Number("Busy (utilisation)", percent(busy))] if busy is not None else []),
        *([Number("Share of the step spent computing", percent(computing))] if computing is not None else []),
        *([Number("Model FLOPs over peak", percent(share))] if share is not None else []),
    ]


def _samples_missing(use: Use) -> str:
    return (
        "" if use.busy is not None else "Utilisation: `dragoman train` samples it every second into the system files."
    )


def _busy(facts: Facts, is_gpu: bool) -> float | None:
    """Mean over hosts of the seconds that belong to training."""
    means: list[float] = []
    for host in facts.hosts:
        values = host.gpu_busy if is_gpu else host.cpu_busy
        is_counted = is_training(host.time, facts.grid) if facts.grid else np.ones(len(values), dtype=bool)
        mean = finite_mean(values[is_counted])
        if mean is not None:
            means.append(mean)
    return sum(means) / len(means) if means else None


def _flops_per_second(facts: Facts) -> float | None:
    vocab_size, rate = facts.run.manifest.data.vocab_size, facts.target_tokens_per_second
    if facts.model is None or vocab_size <= 0 or rate is None:
        return None
    return size_of(facts.model, vocab_size).train_flops_per_token * rate


def _peak(facts: Facts, is_gpu: bool) -> tuple[float | None, bool, tuple[float, float] | None]:
    """(FLOP/s of a rank, whether measured, what is usually reached)."""
    is_half = facts.run.manifest.precision in ("bf16", "fp16")
    name = next((gpu for host in facts.run.manifest.hosts for gpu in host.gpus), "")
    usual: tuple[float, float] | None = None
    peak: float | None = None
    if is_gpu and name:
        try:
            gpu = find_gpu(name)
            peak, usual = (gpu.half_flops, gpu.half_efficiency) if is_half else (gpu.fp32_flops, FP32_EFFICIENCY)
        except DragomanError:
            pass
    compute = facts.run.profile.compute if facts.run.profile else None
    if compute is not None and compute.peak_flops and compute.peak_flops > 0:
        return compute.peak_flops, True, usual
    return peak, False, usual
