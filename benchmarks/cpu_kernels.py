"""What `allocator.py` and `dropout.py` bring on the CPU: the same operation before and after, in one process.

    python benchmarks/cpu_kernels.py [--threads 2]

Prints one JSON line; medians of 20 calls, in milliseconds.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F

from dragoman.allocator import keep_freed_memory
from dragoman.model.dropout import dropout


def milliseconds(call: Callable[[], torch.Tensor]) -> float:
    call()
    times = []
    for _ in range(20):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    return round(statistics.median(times), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    torch.set_num_threads(parser.parse_args().threads)
    logits, activations = torch.randn(2_000, 8_000), torch.randn(2_000, 1_024)
    result: dict[str, object] = {"benchmark": "cpu_kernels", "torch": torch.__version__}
    result["log_softmax_2000x8000_before"] = milliseconds(lambda: F.log_softmax(logits, -1))
    keep_freed_memory()
    result["log_softmax_2000x8000_after"] = milliseconds(lambda: F.log_softmax(logits, -1))
    result["dropout_2000x1024_torch"] = milliseconds(lambda: F.dropout(activations, 0.1, True))
    result["dropout_2000x1024_ours"] = milliseconds(lambda: dropout(activations, 0.1, True))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
