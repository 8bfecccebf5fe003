"""First look at pipelines by a formula: hand cases, and pipelines that it rules out."""

from dataclasses import replace

import numpy as np
import pytest
from strategies import FREE_BANDWIDTH_BYTES_PER_S, free_world, unit_workload, world

from agents.judge.paced_judge import PacedJudge
from des import NO_CORRECTIONS

COUNTS = np.full(2, 4)


def levels_s(topology, orders, *, message_bytes=0.0, schedule="1f1b"):
    """Seven layers of 3 s each on a microbatch, four microbatches."""
    job = unit_workload([(1.0, 2.0)] * 7, num_microbatches=4, message_bytes=message_bytes)
    judge = PacedJudge(topology, job, NO_CORRECTIONS, schedules=(schedule,))
    return judge.levels_s(orders, COUNTS[: len(orders)], 0).tolist()


def test_layers_in_fractions_end_together_on_equal_domains():
    """The second of two stages works a microbatch of the first less: ``4 y1 = y1 + 4 y2 = T``.

    With 21 s of layers ``T = 4 * 21 / (2 - 1/4)``; one domain alone takes 84 s.
    """
    assert levels_s(free_world(2), [(0, 1), (1,)]) == pytest.approx([48.0, 84.0])


def test_a_slow_wire_holds_up_every_microbatch():
    """Four messages of 20 s follow each other; their answers cost nothing."""
    topology = world("AB", {"AB": (1.0, 0.0), "BA": (FREE_BANDWIDTH_BYTES_PER_S, 0.0)})

    assert levels_s(topology, [(0, 1)], message_bytes=20.0) == pytest.approx([80.0])


def test_orders_without_links_or_room_are_ruled_out():
    parted = world("ABC", {"AB": (1.0, 0.0), "BA": (1.0, 0.0)})
    small = replace(
        free_world(2),
        domains=tuple(replace(one, gpu_memory_bytes=80.0) for one in free_world(2).domains),
    )

    assert np.isfinite(levels_s(parted, [(0, 1), (1, 2)])).tolist() == [True, False]
    assert np.isfinite(levels_s(small, [(0, 1), (1,)])).tolist() == [True, False]
