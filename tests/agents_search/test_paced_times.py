"""Pipelines with a limit: rounds that repeat are left out only where the limit is missed."""

import numpy as np
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from search_candidates import PACED, candidates

from agents.search.kernels.pipeline_times import MISFIT, staged_pipeline_s
from agents.search.kernels.records import new_room


def pipeline_s(desk, candidate, num_microbatches, limit_s):
    """Time of a number of microbatches, all simulated."""
    setting = candidate.setting
    rules = desk.rules(setting, is_whole=True)._replace(num_microbatches=num_microbatches)
    sizes = candidate.num_workers, 1, 3 * num_microbatches, num_microbatches
    chain, split = np.array(candidate.chains[0]), np.array(candidate.splits[0], np.int64)
    room = new_room(*sizes)
    own = desk.figures(setting), rules, chain, split, room.no_counts, room
    return staged_pipeline_s(*own, limit_s)


@settings(max_examples=examples(100))
@given(
    drawn=candidates(schedules=PACED),
    num_microbatches=st.integers(1, 400),
    off=st.sampled_from([-0.1, -1e-3, -1e-6, 0.0, 1e-6, 1e-3, 0.1]),
)
def test_a_limit_changes_no_time_below_it(drawn, num_microbatches, off):
    whole_s = pipeline_s(*drawn, num_microbatches, np.inf)
    limit_s = whole_s * (1.0 + off)

    found_s = pipeline_s(*drawn, num_microbatches, limit_s)

    assert found_s == whole_s if whole_s < min(limit_s, MISFIT) else found_s >= limit_s
