"""A rank that counts iterations into a file: of one rank no two may ever run.

``python counting_job.py FOLDER ITERATIONS`` needs the variables of a node.
"""

import fcntl
import os
import sys
import time
from pathlib import Path

from scenarios.cluster.client import Lease

ITERATION_S = 0.02


def count(folder: Path, num_iterations: int) -> None:
    """Count from what is there on, as long as the lease allows it.

    Raises
    ------
    BlockingIOError
        If another process is this rank.
    """
    name = "{job_id}.{dist_rank}".format(**os.environ)
    saved, new = folder / name, folder / f"{name}.new"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        begun = int(saved.read_text("utf-8")) if saved.exists() else 0
        lease = Lease()
        for iteration in range(begun, num_iterations):
            if not lease.goes_on(iteration, loss=1.0 / (1 + iteration)):
                return
            time.sleep(ITERATION_S)
            new.write_text(str(iteration + 1), "utf-8")
            new.replace(saved)


if __name__ == "__main__":
    count(Path(sys.argv[1]), int(sys.argv[2]))
