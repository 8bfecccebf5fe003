"""A task whose module never ends being imported by other processes, and says that it has begun."""

import os
import threading
from multiprocessing import parent_process
from pathlib import Path

FOLDER = "FOLDER_OF_SLOW_IMPORTS"
"""Variable with the folder that each importing process leaves a file in, 0 or 1."""

if parent_process() is not None:
    for name in "01":
        try:
            (Path(os.environ[FOLDER]) / name).touch(exist_ok=False)
        except FileExistsError:
            continue
        break
    threading.Event().wait()


def task(number: int) -> int:
    """Return the number."""
    return number
