"""Every kind of fault: what it does to a run, and what the run may do about it."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from fault_hosts import LINK, SLOW_LINK
from fault_live import LiveRun, TooLateError

FIND_SECONDS = 60.0
FIRE_SECONDS = 90.0
SMALL_BYTES = 64 << 10  # room for records, not for a checkpoint


@dataclass(frozen=True)
class Fault:
    """One fault of a plan. Numbers choose among the hosts and workers that are left when its time has come."""

    kind: str
    at_step: int  # 0: as soon as the command is typed
    delay_seconds: float  # after that step was seen
    host_number: int
    worker_number: int
    seconds: float  # how long it lasts, where it does
    seed: int
    is_hasty: bool = False  # comes while the run still struggles with the one before


@dataclass(frozen=True)
class Injected:
    """What was really done, and when."""

    fault: Fault
    moment: float  # unix seconds
    host: str
    rank: int | None
    checkpoint_before: int | None
    detail: str = ""


@dataclass(frozen=True)
class Kind:
    """`ends_attempt`: True, it must; False, it must not; None, it may."""

    inject: Callable[[LiveRun, Fault], Injected]
    ends_attempt: bool | None
    may_need_typing: bool = False  # even where the controller starts attempts by itself
    exit_code: int | None = None  # of the command, where there is but one right one
    loses_host: bool = False
    seconds: tuple[float, float] = (0.0, 0.0)
    needs_checkpoint: bool = False
    changes_weights: bool = False


def send_to(role: str, number: signal.Signals) -> Callable[[LiveRun, Fault], Injected]:
    """A signal to one process of that role."""

    def inject(live: LiveRun, fault: Fault) -> Injected:
        pid, host = find_process(live, fault, role)
        rank = live.hosts.rank_of(pid)
        done = injected(live, fault, host, rank)
        live.hosts.send_signal([pid], number)
        return done

    return inject


def find_process(live: LiveRun, fault: Fault, role: str) -> tuple[int, str]:
    """It may not be there yet; the controller is on the first host."""
    found: list[tuple[int, str]] = []

    def is_found() -> bool:
        host = live.first if role == "controller" else live.living[fault.host_number % len(live.living)]
        found[:] = [(pid, host) for pid in live.hosts.newest(host, role)]
        return bool(found)

    live.wait(is_found, FIND_SECONDS, f"a {role} to send a signal to")
    if not found:
        raise TooLateError
    return found[fault.worker_number % len(found)]


def injected(live: LiveRun, fault: Fault, host: str, rank: int | None = None, detail: str = "") -> Injected:
    return Injected(fault, time.time(), host, rank, live.last_checkpoint(), detail)


def lose_host(live: LiveRun, fault: Fault) -> Injected:
    """Not the first one."""
    return lose(live, fault, live.living[1 + fault.host_number % (len(live.living) - 1)])


def lose_first_host(live: LiveRun, fault: Fault) -> Injected:
    return lose(live, fault, live.first)


def lose(live: LiveRun, fault: Fault, host: str) -> Injected:
    """Silent first, as when the power goes: nobody hears of the deaths."""
    done = injected(live, fault, host)
    live.hosts.cut_link(host)
    live.hosts.send_signal(list(live.hosts.processes(host)), signal.SIGKILL)
    live.living.remove(host)
    return done


def cut_for_a_while(live: LiveRun, fault: Fault) -> Injected:
    host = live.living[fault.host_number % len(live.living)]
    done = injected(live, fault, host)
    live.hosts.cut_link(host)
    live.disturb(fault.seconds, lambda: live.hosts.mend_link(host))
    return done


def cut_for_good(live: LiveRun, fault: Fault) -> Injected:
    host = live.living[1 + fault.host_number % (len(live.living) - 1)]
    done = injected(live, fault, host)
    live.hosts.cut_link(host)
    live.living.remove(host)
    live.cut_off.append(host)
    return done


def slow_link(live: LiveRun, fault: Fault) -> Injected:
    host = live.living[fault.host_number % len(live.living)]
    done = injected(live, fault, host)
    live.hosts.set_link(host, SLOW_LINK)
    live.disturb(fault.seconds, lambda: live.hosts.set_link(host, LINK))
    return done


def fill_disk(left_bytes: int) -> Callable[[LiveRun, Fault], Injected]:
    def inject(live: LiveRun, fault: Fault) -> Injected:
        host = live.living[fault.host_number % len(live.living)]
        done = injected(live, fault, host)
        live.disturb(fault.seconds, lambda: live.hosts.free_disk(host), lambda: live.hosts.fill_disk(host, left_bytes))
        return done

    return inject


def damage(is_cut: bool) -> Callable[[LiveRun, Fault], Injected]:
    """The run is stopped by hand, and what `last` leads to is damaged on one host before it is started again."""

    def inject(live: LiveRun, fault: Fault) -> Injected:
        random = Random(fault.seed)
        host = live.living[fault.host_number % len(live.living)]
        moment = time.time()
        live.stop()
        step = live.last_checkpoint(host)
        if step is None:
            return Injected(fault, moment, host, None, live.last_checkpoint(), "there was no checkpoint to damage")
        folder = live.hosts.run_folder(host).step_checkpoint(step)
        path = random.choice(sorted(folder.iterdir()))
        data = bytearray(path.read_bytes())
        at = random.randrange(len(data))
        if is_cut:
            del data[at:]
        else:
            data[at] ^= 1 << random.randrange(8)
        path.write_bytes(bytes(data))
        what = f"{path.name} cut to {at} bytes" if is_cut else f"a bit of {path.name} at {at}"
        return Injected(fault, moment, host, None, live.last_checkpoint(), what)

    return inject


def jump_clock(live: LiveRun, fault: Fault) -> Injected:
    host = live.living[fault.host_number % len(live.living)]
    ahead = Random(fault.seed).choice((-3 * 86_400.0, -600.0, -2.0, 2.0, 90.0, 7_200.0, 86_400.0))
    done = injected(live, fault, host, detail=f"{ahead:+g} s")
    live.hosts.set_clock(host, ahead)
    return done


def inside_rank(live: LiveRun, fault: Fault) -> Injected:
    """Lay the file that the rank looks for, and wait until it has found it."""
    pid, host = find_process(live, fault, "worker")
    rank = live.hosts.rank_of(pid)
    folder = live.hosts.folder_of(host)
    fired = folder / "fired"
    fired.unlink(missing_ok=True)
    before = injected(live, fault, host, rank)
    (folder / f"{fault.kind} {rank}").touch()
    live.wait(fired.exists, FIRE_SECONDS, f"{fault.kind} in rank {rank}")
    if not fired.exists():
        raise TooLateError
    return Injected(fault, float(fired.read_text() or before.moment), host, rank, before.checkpoint_before)


KINDS: dict[str, Kind] = {
    "kill-worker": Kind(send_to("worker", signal.SIGKILL), True),
    "kill-agent": Kind(send_to("agent", signal.SIGKILL), True),
    "kill-controller": Kind(send_to("controller", signal.SIGKILL), True, may_need_typing=True),
    "term-worker": Kind(send_to("worker", signal.SIGTERM), True, may_need_typing=True, exit_code=143),
    "term-agent": Kind(send_to("agent", signal.SIGTERM), True, may_need_typing=True, exit_code=143),
    "term-controller": Kind(send_to("controller", signal.SIGTERM), True, may_need_typing=True, exit_code=143),
    "lose-host": Kind(lose_host, True, loses_host=True),
    "lose-first-host": Kind(lose_first_host, True, may_need_typing=True, loses_host=True),
    "cut-5s": Kind(cut_for_a_while, False, seconds=(5.0, 5.0)),
    "cut-60s": Kind(cut_for_a_while, None, seconds=(60.0, 60.0)),
    "cut-for-good": Kind(cut_for_good, True, loses_host=True),
    "slow-link": Kind(slow_link, False, seconds=(4.0, 12.0)),
    "disk-full-checkpoint": Kind(fill_disk(SMALL_BYTES), False, seconds=(2.0, 6.0)),
    "disk-full-log": Kind(fill_disk(0), False, seconds=(2.0, 6.0)),
    "truncate-checkpoint": Kind(damage(True), True, may_need_typing=True, exit_code=130, needs_checkpoint=True),
    "flip-checkpoint": Kind(damage(False), True, may_need_typing=True, exit_code=130, needs_checkpoint=True),
    "clock-jump": Kind(jump_clock, False),
    "freeze-worker": Kind(send_to("worker", signal.SIGSTOP), True),
    "nan-gradient": Kind(inside_rank, False, changes_weights=True),
    "out-of-memory": Kind(inside_rank, True),
}
