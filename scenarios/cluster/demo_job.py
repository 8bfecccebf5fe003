"""A rank of a job of the demonstration: counts iterations, with a checkpoint and a lease.

``python -m scenarios.cluster.demo_job FOLDER ITERATIONS SECONDS`` needs the variables of a node.
"""

import os
import sys
import time
from pathlib import Path

from scenarios.cluster.client import Lease


def main(folder: Path, num_iterations: int, iteration_s: float) -> int:
    """Count from the checkpoint on; rank 0 writes one every tenth iteration and on leaving."""
    variables = os.environ
    saved = folder / f"job-{variables['job_id']}.iteration"
    is_first = variables["dist_rank"] == "0"
    begun = int(saved.read_text("utf-8")) if saved.exists() else 0
    lease = Lease()
    for iteration in range(begun, num_iterations):
        goes_on = lease.goes_on(iteration, loss=1.0 / (1 + iteration))
        if is_first and (not goes_on or iteration % 10 == 0):
            new = saved.with_suffix(".new")
            new.write_text(str(iteration), "utf-8")
            new.replace(saved)
        if not goes_on:
            break
        time.sleep(iteration_s)  # what a training would compute
    lease.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
