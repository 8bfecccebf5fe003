"""Orders that the search makes in a loop are those of the schedules."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agents.search.kernels.orders import write_interleaved
from des.schedules.interleaved import interleaved_1f1b

KINDS = "FB"


def read(orders, num_rows, num_workers):
    """Rows of arrays as kind, microbatch and stage of each worker."""
    return tuple(
        tuple(
            (KINDS[kind], microbatch, chunk * num_workers + worker)
            for kind, chunk, microbatch in orders[worker, :num_rows].tolist()
        )
        for worker in range(num_workers)
    )


def plain(orders):
    return tuple(tuple(map(tuple, order)) for order in orders)


@given(st.integers(1, 5), st.integers(2, 4), st.integers(1, 24), st.integers(0, 9))
def test_interleaved_orders_are_those_of_the_schedule(workers, chunks, num_microbatches, more):
    """Groups of any size, also where the last one is smaller or has less than the pipeline."""
    num_rows = 2 * chunks * num_microbatches
    orders = np.zeros((workers, num_rows + 1, 3), np.int32)

    assert write_interleaved(orders, workers, chunks, num_microbatches, workers + more) == num_rows

    expected = interleaved_1f1b(workers, chunks, num_microbatches, workers + more)
    assert read(orders, num_rows, workers) == plain(expected)
