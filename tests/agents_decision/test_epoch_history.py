"""History known to a scheduler: figures by hand and those of the whole past."""

import dataclasses
import math

import numpy as np
import pytest
from epoch_cases import FREE_PAIR, slowed
from hypothesis import given
from hypothesis import strategies as st
from strategies import world

from agents.decision.history import LEAST_RATIO, NetworkHistory
from des import Topology


def with_bandwidths(there, back):
    return world("AB", {"AB": (there, 0.0), "BA": (back, 0.0)})


def test_the_past_of_a_link_by_hand():
    """Bandwidth 1, 1/4, 1/4, 1 of the base: logs 0, -2c, -2c, 0 with c = log 2.

    Mean -c, squares about it 4 c^2, neighbours' products -c^2 + c^2 - c^2.
    """
    history = NetworkHistory(with_bandwidths(8.0, 8.0))
    c = math.log(2.0)

    seen = [
        history.observe(with_bandwidths(8.0 * ratio, 8.0), epoch).links
        for epoch, ratio in enumerate((1.0, 0.25, 0.25, 1.0))
    ]

    assert [past.log_ratio[0, 1] for past in seen] == pytest.approx([0, -2 * c, -2 * c, 0])
    assert [past.since_change[0, 1] for past in seen] == [0, 0, 1, 0]
    assert [past.congested_share[0, 1] for past in seen] == pytest.approx([0, 1 / 2, 2 / 3, 1 / 2])
    assert [past.dwell[0, 1] for past in seen] == pytest.approx([1, 2 / 2, 3 / 2, 4 / 3])
    assert [past.mean[0, 1] for past in seen][1::2] == pytest.approx([-c, -c])
    assert [past.variance[0, 1] for past in seen][1::2] == pytest.approx([c * c, c * c])
    assert [past.lag_one[0, 1] for past in seen][::3] == pytest.approx([0.0, -1 / 4])
    still = seen[-1]
    assert (still.since_change[1, 0], still.dwell[1, 0], still.lag_one[1, 0]) == (3, 4, 1)
    assert still.log_ratio[0, 0] == still.dwell[0, 0] == 0.0


def test_the_past_of_domains_and_of_links_that_are_gone():
    history = NetworkHistory(FREE_PAIR)

    memory = history.observe(dataclasses.replace(slowed(0.25), links=()), 0)

    assert memory.domains.log_ratio.tolist() == pytest.approx([0.0, math.log(0.25)])
    assert memory.domains.congested_share.tolist() == [0.0, 1.0]
    assert memory.links.log_ratio[0, 1] == math.log(LEAST_RATIO)


@given(
    ratios=st.lists(st.floats(0.05, 2.0), min_size=2, max_size=12),
    unit=st.sampled_from([1.0, 0.125, 8.0]),
)
def test_running_figures_are_those_of_the_whole_past(ratios, unit):
    history = NetworkHistory(with_bandwidths(unit, unit))
    for epoch, ratio in enumerate(ratios):
        past = history.observe(with_bandwidths(ratio * unit, unit), epoch).links

    logs = np.log(ratios)
    centred = logs - logs.mean()
    assert past.mean[0, 1] == pytest.approx(logs.mean(), abs=1e-9)
    assert past.variance[0, 1] == pytest.approx(logs.var(), abs=1e-9)
    if (np.abs(np.diff(logs)) > 0.011).any():
        lag_one = (centred[1:] * centred[:-1]).sum() / (centred**2).sum()
        assert past.lag_one[0, 1] == pytest.approx(lag_one, abs=1e-6)


def test_a_history_takes_epochs_in_turn_of_its_own_domains():
    history = NetworkHistory(FREE_PAIR)

    with pytest.raises(ValueError, match="epoch must be 0, the next one, got 1"):
        history.observe(FREE_PAIR, 1)
    with pytest.raises(ValueError, match="must have the domains A, B, got A"):
        history.observe(Topology.of(FREE_PAIR.domains[:1], []), 0)
