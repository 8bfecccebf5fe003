"""Device and precision of torch, and memory settings of this process."""

import ctypes

import torch

DEVICES = ("cpu", "cuda")
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_KEPT_BYTES = 2**30
_LARGEST_KEPT_BYTES = 2**25  # the most that glibc takes


def resolve_device(name: str) -> str:
    """Name of a device of ``DEVICES``; "auto" is CUDA where there is one.

    Raises
    ------
    ValueError
        If the name is another, or says CUDA where there is none.
    """
    has_cuda = torch.cuda.is_available()
    if name == "auto":
        return "cuda" if has_cuda else "cpu"
    allowed = DEVICES if has_cuda else ("cpu",)
    if name not in allowed:
        raise ValueError(
            f"device must be auto or one of {', '.join(allowed)} on this machine, got {name!r}"
        )
    return name


def use_torch_threads(num_threads: int) -> None:
    """Let torch compute on that many threads: one is fastest for networks of this size."""
    torch.set_num_threads(num_threads)


def keep_freed_memory() -> bool:
    """Let this process keep up to 1 GiB that it has freed, for its next arrays.

    Otherwise glibc hands every array of some 100 kB back to the system as soon as it is freed,
    and writing to the next one costs a page fault per 4 KiB: up to half of the time of training.

    Returns
    -------
    bool
        Whether that was possible; it is with glibc alone, and results do not depend on it.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES) and mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    )
