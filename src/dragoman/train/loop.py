"""The training loop: one flat function, read from top to bottom. A new thing in training is a new line here."""

import hashlib
import time

import torch

from dragoman.config import SyncConfig
from dragoman.data.batches import BatchPlan
from dragoman.data.shards import open_shards
from dragoman.dist.landing import landing
from dragoman.dist.methods import make_sync
from dragoman.dist.sync import Totals
from dragoman.dist.world import World
from dragoman.plan.schedule import lr_at
from dragoman.train.build import build_model
from dragoman.train.checkpoint import Checkpoints
from dragoman.train.clocks import clock_of
from dragoman.train.describe import describe_run
from dragoman.train.exchange import settle_exchange
from dragoman.train.feed import feed
from dragoman.train.job import Job
from dragoman.train.meter import Meter
from dragoman.train.numbers import LEFT_OUT, MANY, MANY_SCALED, NUM_TOTALS, Streak, marks
from dragoman.train.optim import Optimizer
from dragoman.train.passes import make_passes
from dragoman.train.progress import SaveTimer
from dragoman.train.promise import measure_run, promise_run
from dragoman.train.recorder import Recorder
from dragoman.train.rollback import roll_back
from dragoman.train.stop import LEAVING, UNFINISHED, Stopper
from dragoman.train.validate import Validator
from dragoman.train.watchdog import Watchdog


def train(job: Job, world: World) -> str:
    """Train until something says stop, and say what it was."""
    began = time.time()
    recipe, folder = job.recipe, job.folder
    data = open_shards(job.data)
    vocab = data.load_vocab()
    plan = BatchPlan(data.shards, job.cut_recipe.batch, recipe.train.seed)
    built = build_model(recipe, vocab.size, world.device, job.init, job.recomputes, job.precision)
    model, flat = built.model, built.flat
    optimizer = Optimizer(flat, recipe.optim, built.rounded, built.scale)
    passes = make_passes(built, recipe, plan)
    profile = measure_run(job, world, built, passes, optimizer, plan)
    exchange = settle_exchange(job, world, profile)
    sync = make_sync(SyncConfig.model_validate(exchange.settings), world, flat)
    checkpoints = Checkpoints(folder, world, model, optimizer, sync, recipe, data.vocab_path)
    progress, notes = checkpoints.restore()
    stopper = Stopper(recipe.train, progress, job.bought_seconds)
    validator = Validator(data, plan, vocab, recipe, world, stopper.is_leaving)
    save_timer = SaveTimer(recipe.checkpoint.every_minutes)
    recorder = Recorder(job, world, progress.step + 1)
    with world.together():
        if world.is_first:
            promise_run(job, data, profile, exchange, recorder.say)
    with world.together():
        manifest = describe_run(job, world, data, built, exchange, began)
        recorder.start(manifest, plan, progress, notes)

    votes = torch.tensor(stopper.votes(), device=world.device)
    reason = stopper.reason(*world.sum(votes).tolist())
    inputs = feed(plan, world, range(progress.step + 1, recipe.train.max_steps + 1), passes.piece)
    passes.refresh()
    recorder.clocks(progress.step)
    streak = Streak(progress.step, MANY if built.scale is None else MANY_SCALED)
    meter = Meter(clock_of(world.device))
    watchdog = Watchdog(meter, world.name, folder.hang_path(world.rank), 60 * recipe.train.hang_minutes)
    while reason is None:
        step = progress.step + 1
        meter.begin("data")
        step_input = next(inputs)
        meter.begin("other")
        num_tokens = step_input.plan.target_tokens
        if sync.has_replicas:
            passes.refresh()
        totals = torch.zeros(NUM_TOTALS, dtype=torch.float64, device=world.device)
        for piece in step_input.pieces:
            meter.begin("forward")
            totals[:2] += passes.forward(piece, dropout_seed(recipe.train.seed, step, piece.index), num_tokens)
            meter.begin("backward")
            if piece is step_input.pieces[-1]:
                sync.begin_last_backward()
                flat.gradient[:1] += 0 * totals[0]  # a loss that is no number makes the gradient none, on all ranks
            passes.backward()
        meter.begin("exchange")
        sync.exchange(step_input.own_tokens, num_tokens)
        meter.begin("optimizer")
        rate = progress.rate_factor * lr_at(step, recipe.optim, recipe.model.d_model, recipe.train.max_steps)
        norm = optimizer.update(rate * sync.rate_factor)
        # The ranks' votes cross the link with the losses, so that all of them take the same branch.
        votes = [*stopper.votes(), world.is_first and save_timer.is_due(), checkpoints.vote()]
        totals[2:LEFT_OUT] = torch.tensor(votes, dtype=torch.float64).to(world.device, non_blocking=True)
        totals[LEFT_OUT:] = marks(norm, norm if sync.has_replicas else totals[0], world.rank)
        norm = landing(norm)
        meter.begin("exchange")
        arrived = sync.advance(step, totals)
        progress.step = step
        progress.target_tokens += num_tokens
        stopper.tick()
        reason = stopper.reason(*votes_of(arrived)[:2])
        if reason not in (None, *LEAVING):
            arrived += sync.finish()
        meter.begin("other")

        is_evaluation = step % recipe.evaluate.every_steps == 0 or reason not in (None, *LEAVING)
        is_save = is_evaluation or reason is not None or step % recipe.checkpoint.every_steps == 0
        if is_evaluation:
            meter.begin("validation")
            with sync.shared_weights():
                evaluations = validator.run(model, built.autocast(), step, job.attempt)
                gains = progress.note_evaluation(evaluations[0].record) if evaluations else []
                recorder.evaluation(step, evaluations, gains)
                recorder.clocks(step)
                reason = reason or stopper.reason()
        if is_save or votes_of(arrived)[2]:
            meter.begin("checkpoint")
            arrived += sync.settle()
            recorder.checkpoint(checkpoints.begin(progress))
            save_timer.reset()
        elif checkpoints.is_written([totals[5] for totals in arrived]):
            meter.begin("checkpoint")
            recorder.checkpoint(checkpoints.finish())
        meter.end_step(set_time=is_evaluation)
        recorder.step(step_input.plan, rate, norm, sync.sent_bytes)
        recorder.catch_up(meter.take(wait=reason is not None), arrived)
        if streak.note(arrived) and reason is None:
            meter.begin("checkpoint")
            recorder.catch_up(meter.take(wait=True), sync.settle())
            inputs.close()
            reason = roll_back(streak, progress, checkpoints, recorder)
            save_timer.hurry()  # half the rate, and that going back was tried
            inputs = feed(plan, world, range(progress.step + 1, recipe.train.max_steps + 1), passes.piece)
            passes.refresh()

    watchdog.close()
    inputs.close()
    recorder.checkpoint(checkpoints.end())
    if reason not in UNFINISHED:
        checkpoints.save_average()
    recorder.end(progress, reason)
    return reason


def votes_of(arrived: list[Totals]) -> tuple[float, float, float]:
    """(interrupted, late, a save is due), summed over what has arrived."""
    sums = [sum(totals[column] for totals in arrived) for column in (2, 3, 4)]
    return sums[0], sums[1], sums[2]


def dropout_seed(seed: int, step: int, microbatch: int) -> int:
    """The same for the same microbatch on whatever rank it is computed."""
    digest = hashlib.blake2b(f"{seed} {step} {microbatch}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
