"""The system calls that make a process a host of its own: unshare, setns, mount. Linux only; knows no lab."""

import ctypes
import os
import signal
from pathlib import Path

NEW_MOUNTS = 0x00020000
NEW_HOSTNAME = 0x04000000
NEW_IPC = 0x08000000
NEW_USER = 0x10000000
NEW_PIDS = 0x20000000
NEW_NETWORK = 0x40000000
NEW_HOST = NEW_MOUNTS | NEW_HOSTNAME | NEW_IPC | NEW_NETWORK
# A host's namespaces as /proc names them; the mounts come last, because they change what /proc shows.
HOST_NAMESPACES = ("net", "uts", "ipc", "mnt")

MOUNT_BIND = 4096
MOUNT_RECURSIVE = 16384
MOUNT_PRIVATE = 1 << 18

_SET_DEATH_SIGNAL = 1

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def enter(namespace_fd: int) -> None:
    _check(_libc.setns(namespace_fd, 0), "setns")


def set_hostname(name: str) -> None:
    _check(_libc.sethostname(name.encode(), len(name)), "sethostname")


def die_with_parent() -> None:
    """The kernel kills this process when its parent ends, however that happens."""
    _check(_libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL), "prctl")


def reset_signals(*numbers: signal.Signals) -> None:
    """Before exec, which passes on what is ignored: these, and those that Python ignores (`yes | head` would fail)."""
    for number in (*numbers, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    fields = [text.encode() or None for text in (source, target, kind)]
    result = _libc.mount(*fields, ctypes.c_ulong(flags), options.encode() or None)
    _check(result, f"mount {kind or source} on {target}")


def bind(source: str, target: str) -> None:
    mount(source, target, flags=MOUNT_BIND | MOUNT_RECURSIVE)


def own_mounts() -> None:
    """What is mounted from now on stays in this namespace."""
    mount("none", "/", flags=MOUNT_RECURSIVE | MOUNT_PRIVATE)


def quieten_network() -> None:
    """Cards made from now on give themselves no IPv6 address: they carry only what is sent on purpose."""
    setting = Path("/proc/sys/net/ipv6/conf/default/addr_gen_mode")
    if setting.exists():
        setting.write_text("1")


def become_root_of_own_user_namespace() -> None:
    """As `unshare --map-root-user`: all rights over what is made inside, none over the machine."""
    uid, gid = os.geteuid(), os.getegid()
    unshare(NEW_USER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123 - Path.write_text would truncate first
            file.write(text)


def namespace_of(pid: int | str, name: str, proc: str = "/proc") -> str:
    """Its identity, such as 'net:[4026531840]'."""
    return str(Path(f"{proc}/{pid}/ns/{name}").readlink())


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
