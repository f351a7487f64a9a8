"""Which errors of a rank are only the echo of another rank's end."""

import torch.distributed as dist

# What gloo, nccl and the store say when the other end of a connection is gone.
ECHOES = (
    "Connection closed by peer",
    "Connection reset by peer",
    "Broken pipe",
    "Socket closed",
    "socket closed",
    "remote process exited",
    "Socket Timeout",
    "NCCL communicator was aborted",
    "failed to recv, got 0 bytes",
    "Connection was likely closed",
    "pair closure",
    "Timed out waiting",
)


def is_lost_peer(error: BaseException) -> bool:
    """True where this rank is well and another one, or the way to it, is gone."""
    if isinstance(error, dist.DistNetworkError):
        return True
    return isinstance(error, RuntimeError) and any(echo in str(error) for echo in ECHOES)
