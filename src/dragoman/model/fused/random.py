"""Which elements dropout keeps: a hash of (seed, site, index), so that no mask is stored and none crosses a pass.

The seed lies in device memory, so that a captured graph draws anew at every replay.
"""

import triton
import triton.language as tl


@triton.jit
def mixed(x):
    """A bijection of 32-bit words in which every input bit sways every output bit (lowbias32, Wellons 2018)."""
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D
    x = x ^ (x >> 15)
    x = x * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def site_key(seed_ptr, site):
    """One word for this place in the model in this pass."""
    low = tl.load(seed_ptr).to(tl.uint32)
    high = tl.load(seed_ptr + 1).to(tl.uint32)
    return mixed(mixed(low + site.to(tl.uint32) * 0x9E3779B9) ^ high)


@triton.jit
def is_kept(key, index, threshold):
    """True with probability 1 - threshold / 2^24."""
    return (mixed(index.to(tl.uint32) + key) >> 8) >= threshold.to(tl.uint32)
