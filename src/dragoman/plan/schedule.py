"""The learning rate as a formula of the step. No torch, no state: what a run will do can be drawn before it starts."""

import math

from dragoman.config import OptimConfig


def lr_at(step: int, config: OptimConfig, d_model: int, max_steps: int) -> float:
    """Learning rate of a step; steps count from 1."""
    if config.schedule == "transformer":
        rise_or_fall = min(step**-0.5, step * config.warmup_steps**-1.5)
        return config.learning_rate * d_model**-0.5 * rise_or_fall
    if step <= config.warmup_steps:
        return config.learning_rate * step / config.warmup_steps
    return config.learning_rate * _falling_share(step, config, max_steps)


def _falling_share(step: int, config: OptimConfig, max_steps: int) -> float:
    """Rate over peak after the warm-up: from 1 down to `final_share` at the last step."""
    first = config.warmup_steps
    if config.schedule == "wsd":
        first = max(first, round(max_steps * (1 - config.decay_share)))
    progress = min(max(step - first, 0) / max(max_steps - first, 1), 1.0)
    if config.schedule == "cosine":
        progress = (1 - math.cos(math.pi * progress)) / 2
    return 1 - (1 - config.final_share) * progress
