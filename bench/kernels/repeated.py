"""Many batches one after the other without Python in between, as the environment runs them."""

import numpy as np

from des.base.jit import kernel
from des.compiled.kernels.lanes import LaneRules, Lanes, Record
from des.compiled.kernels.recurrence import run_lanes


@kernel
def run_repeatedly(
    lanes: Lanes,
    rules: LaneRules,
    rows: np.ndarray,
    num_stages: int,
    record: Record,
    first_seed: int,
    num_batches: int,
) -> int:
    """Run several batches, each lane with the next seed; returns how many ended."""
    for batch in range(num_batches):
        for lane in range(lanes.seed.size):
            lanes.seed[lane] = first_seed + batch * lanes.seed.size + lane
        if run_lanes(lanes, rules, rows, num_stages, record) != 0:
            return batch
    return num_batches
