"""The machine that a process runs on: its processor, and the cores that may be used."""

import os
import platform
import sys
from contextlib import suppress
from pathlib import Path


def usable_cores() -> int:
    """Cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_name() -> str:
    """Name of the processor."""
    with suppress(OSError):  # elsewhere than on Linux
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
