"""Many batches one after the other without Python in between, as the environment runs them."""

import numpy as np

from des.base.jit import kernel
from des.compiled.kernels.lanes import Lanes, Record
from des.compiled.kernels.recurrence import run_lanes


@kernel
def run_repeatedly(
    lanes: Lanes, rows: np.ndarray, num_stages: int, record: Record, num_batches: int
) -> None:
    """Run all lanes several times."""
    for _ in range(num_batches):
        run_lanes(lanes, rows, num_stages, record)
