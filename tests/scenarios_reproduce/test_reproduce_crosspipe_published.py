"""Published figures of CrossPipe against each other: a cost of transfers that nothing gives."""

import json

import pytest

from scenarios.reproduce.cases import PUBLISHED
from scenarios.reproduce.crosspipe_runs import FORWARD_S

ROWS = {
    (row["latency_over_forward"], row["transfer_over_forward"]): row["seconds_per_microbatch"]
    for row in json.loads((PUBLISHED / "crosspipe.json").read_text())["rows"]
}
TRANSFER_S = 2.0 * FORWARD_S


@pytest.mark.parametrize("column", ["greedy_1x", "optimal_ud_1x", "greedy_2x", "optimal_ud_2x"])
def test_a_transfer_costs_a_quarter_of_itself_more_than_a_latency(column):
    """Each microbatch, although no wire is full: a message each way, and passes of 0.105 s."""
    more_s = ROWS[0.25, 2.0][column] - ROWS[2.0, 0.25][column]

    assert 0.22 < more_s / TRANSFER_S < 0.35


def test_directions_that_share_a_wire_would_be_slower_than_what_was_measured():
    """A wave sends two messages each way for a microbatch, other schedules one."""
    for column, messages in (("greedy_2x", 2), ("optimal_ud_2x", 2), ("optimal_wave_2x", 4)):
        assert ROWS[0.25, 2.0][column] < messages * TRANSFER_S
