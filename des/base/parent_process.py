"""Processes that end with their parent, even when it is killed."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PRCTL = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None


def be_killed_with(parent_pid: int) -> None:
    """Let Linux kill this process when the thread that started it has ended; else do nothing.

    Also for use between the fork of a process and the start of its program.
    """
    if _PRCTL is None:
        return
    if _PRCTL(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl: cannot be told of the end of the parent")
    if os.getppid() != parent_pid:  # it ended before the call
        os.kill(os.getpid(), signal.SIGKILL)
