"""A task whose process hears of Ctrl-C while it is still starting; nothing here is collected."""

import multiprocessing
import os
import signal

if multiprocessing.parent_process() is not None:
    os.kill(os.getpid(), signal.SIGINT)


def doubled(number: int) -> int:
    """Twice the number."""
    return 2 * number
