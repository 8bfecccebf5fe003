"""Processes that end with the one that started them, though that be killed."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PRCTL = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None


def be_killed_with(parent_pid: int) -> None:
    """Let Linux kill this process when the thread that started it has ended; else do nothing.

    Also for a process that has yet to become another program, between its start and that.
    """
    if _PRCTL is None:
        return
    if _PRCTL(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl: cannot be told of the end of the parent")
    if os.getppid() != parent_pid:  # it has ended before we could ask for that
        os.kill(os.getpid(), signal.SIGKILL)
