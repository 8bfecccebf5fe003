"""Days that are cut out of a trace, and a network that keeps learning while it serves."""

from dataclasses import replace

import numpy as np
import pytest

from agents.serving.autoscale_task import DAY_S, TraceDays, day_world, draw_day
from agents.serving.learnt_policy import learn_in_the_loop, learnt_policy
from agents.serving.table import SHIPPED
from des.compiled.fleet import run_compiled
from des.serving.requests import Request


def trace(num, gap_s):
    """Requests at equal gaps, each with a prompt of its own length."""
    return tuple(
        Request(request_id=n, arrival_s=n * gap_s, prompt_tokens=n + 1, output_tokens=5)
        for n in range(num)
    )


def test_unseen_days_are_of_the_last_quarter_and_no_other_day_reaches_it():
    requests = trace(1001, 12.0)
    seen, unseen = (
        TraceDays(requests=requests, is_unseen=is_unseen) for is_unseen in (False, True)
    )
    assert seen.day_s == DAY_S
    of_training = {one.prompt_tokens for seed in range(60) for one in seen(seed).requests}
    of_comparison = {one.prompt_tokens for seed in range(60) for one in unseen(seed).requests}
    assert max(of_training) <= 751 <= min(of_comparison)
    assert {len(seen(seed).requests) for seed in range(9)} == {100}
    assert all(seen(seed).requests[0].arrival_s == 0.0 for seed in range(9))
    assert seen(3).requests == seen(3).requests != seen(4).requests


def test_a_short_trace_has_quarters_as_days_and_a_shorter_one_none():
    short = TraceDays(requests=trace(401, 3.0), is_unseen=True)
    world = short(7)
    assert (short.day_s, world.horizon_s) == (300.0, 300.0)
    assert [one.prompt_tokens for one in world.requests] == list(range(301, 401))
    with pytest.raises(ValueError, match="requests must span at least 120 s, got 11 over 30 s"):
        TraceDays(requests=trace(11, 3.0))


def test_a_network_learns_in_the_loop_and_the_same_seed_gives_the_same_run():
    world = day_world(draw_day(5).requests[:4000])
    first, second = (learn_in_the_loop(world, 3, SHIPPED) for _ in range(2))
    frozen = run_compiled(world, learnt_policy(SHIPPED), 3)
    assert first.requests == second.requests
    assert [one for _, one in first.decisions] == [one for _, one in second.decisions]
    assert len(first.requests) == len(frozen.requests)
    assert np.isfinite(first.end_s)
    assert [one for _, one in first.decisions] != [one for _, one in frozen.decisions]


def test_a_network_learns_on_a_fleet_whose_pools_have_engines_of_their_own():
    world = day_world(draw_day(5).requests[:300])
    smaller = replace(world.engine, num_gpus=4)
    history = learn_in_the_loop(replace(world, engines={"token": smaller}), 3, SHIPPED)

    assert len(history.requests) == 300
