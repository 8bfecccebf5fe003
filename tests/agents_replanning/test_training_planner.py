"""Moves that pay: two domains of 1 FLOP/s and two layers, of which B has become busy."""

from dataclasses import replace

import numpy as np
import pytest
from strategies import plan, unit_domain, unit_workload, world

from agents.decision.threshold import ReplanThreshold
from agents.planners.table import PLANNERS
from agents.replanning.training_planner import ChangePayoff, Replanning, TwoLevels
from des import STEADY, InfeasiblePlacementError, simulate
from des.simulation.migration import migration_s
from des.training.training_run import run_training
from des.training.training_settings import EpochView, TrainingRun
from des.world.domain_load import IDLE, DomainLoad

PAIR = world("AB", {"AB": (4.0, 0.0), "BA": (4.0, 0.0)})
"""A layer of 16 bytes moves within 4 s."""

TWO_LAYERS = unit_workload([(1, 1)] * 2, num_microbatches=1)
BUSY_B = (IDLE, DomainLoad(utilisation=0.5))


def view_of(topology, plan, loads=BUSY_B):
    return EpochView(
        epoch=1, time_s=0.0, topology=topology, loads=loads, load_changes=(), plan=plan
    )


def payoff_of(run, horizon_epochs):
    return ChangePayoff(
        workload=TWO_LAYERS, schedule="1f1b", run=run, horizon_epochs=horizon_epochs
    )


def two_levels(planner, **levels):
    run = TrainingRun(num_epochs=9, epoch_s=40.0, restart_s=0.0)
    return TwoLevels(planner=planner, payoff=payoff_of(run, 1.0), **levels)


def decided(view, *, planner="single_domain", horizon_epochs=1.0, epoch_s=40.0, **costs):
    run = TrainingRun(num_epochs=9, epoch_s=epoch_s, **costs)
    replanning = Replanning(planner=PLANNERS[planner], payoff=payoff_of(run, horizon_epochs))
    return replanning.decide(np.random.default_rng(0))(view)


def test_a_move_is_made_where_it_pays_within_the_horizon():
    """All in B takes 8 s, in A 4 s: half of the horizon is saved, 8 s and a restart are paid."""
    at_b, at_a = view_of(PAIR, plan(1, 1)), plan(0, 0)

    assert decided(at_b, restart_s=11.5) == at_a  # 19.5 s of 40 s
    assert decided(at_b, restart_s=12.5) == plan(1, 1)
    assert decided(at_b, restart_s=12.5, horizon_epochs=2.0) == at_a
    assert decided(at_b, restart_s=12.5, epoch_s=80.0) == at_a
    assert decided(at_b, restart_s=12.5, pays_bytes=False) == at_a


def test_the_first_plan_is_the_planners_and_a_worse_one_never_comes_after():
    assert decided(view_of(PAIR, None), planner="uniform") == plan(0, 1)
    there = view_of(PAIR, plan(0, 0))
    assert decided(there, planner="uniform", restart_s=0.0, pays_bytes=False) == plan(0, 0)


def test_over_links_that_are_down_nothing_moves_and_what_needs_them_gets_out():
    cut = replace(PAIR, links=())
    one_way = replace(PAIR, links=PAIR.links[1:])

    assert decided(view_of(cut, plan(1, 1)), restart_s=0.0) == plan(1, 1)
    assert decided(view_of(one_way, plan(1, 1)), restart_s=0.0) == plan(0, 0)
    assert decided(view_of(one_way, plan(0, 1)), restart_s=0.0) == plan(0, 0)


def test_where_no_plan_fits_beside_the_jobs_the_present_one_waits():
    """A layer holds 17 bytes at work: 2 of 40 bytes fit into one domain, not into a quarter."""
    small = replace(PAIR, domains=tuple(unit_domain(name, memory_bytes=40.0) for name in "AB"))
    full = (DomainLoad(utilisation=0.25, memory_occupancy=0.75),) * 2

    assert decided(view_of(small, plan(1, 1), full), planner="exact") == plan(1, 1)
    with pytest.raises(InfeasiblePlacementError):
        decided(view_of(small, None, full), planner="exact")


def test_the_rule_costs_nothing_where_the_world_stands_still():
    run = TrainingRun(num_epochs=4, epoch_s=100.0)
    replanning = Replanning(planner=PLANNERS["exact"], payoff=payoff_of(run, 4.0))

    history = run_training(PAIR, TWO_LAYERS, replanning.decide(np.random.default_rng(0)), run)

    assert history.migration_s == 0
    best_s = simulate(PAIR, TWO_LAYERS, history.epochs[0].plan).makespan_s
    assert history.total_s == 100 * best_s
    assert PAIR.dynamics == STEADY
    assert migration_s(PAIR, TWO_LAYERS, plan(0, 0), plan(1, 1), restart_s=0.0) == 8.0


def test_a_planner_is_asked_again_only_where_something_in_use_has_changed():
    """B is busy by a half, then by a tenth more than at the last question, then by a quarter."""
    asked = []

    def here(view):
        asked.append(view.loads[1].utilisation)
        return plan(0, 1)

    quiet = two_levels(here, threshold=ReplanThreshold(share=0.2))
    for utilisation in (0.5, 0.55, 0.58, 0.625, 0.6):
        loads = (IDLE, DomainLoad(utilisation=utilisation))
        assert quiet(view_of(PAIR, None if not asked else plan(0, 1), loads)) == plan(0, 1)
    quiet(view_of(PAIR, None))

    assert asked == [0.5, 0.625, 0.5]


def test_a_plan_that_no_longer_fits_is_asked_about():
    """A layer holds 17 bytes at work, of which 40 are enough for two."""
    small = replace(PAIR, domains=tuple(unit_domain(name, memory_bytes=40.0) for name in "AB"))
    asked = []
    quiet = two_levels(
        lambda view: asked.append(view.epoch) or plan(0, 0), threshold=ReplanThreshold(share=0.9)
    )
    for occupancy in (0.0, 0.1, 0.5):
        loads = (DomainLoad(memory_occupancy=occupancy), IDLE)
        quiet(view_of(small, plan(0, 0), loads))

    assert len(asked) == 2


def test_a_planner_is_asked_again_after_its_number_of_iterations():
    asked = []
    quiet = two_levels(
        lambda view: asked.append(view.num_iterations) or plan(0, 1), every_iterations=10
    )
    for done in (0, 6, 10, 19, 20, 45, 50):
        quiet(replace(view_of(PAIR, None if not asked else plan(0, 1)), num_iterations=done))

    assert asked == [0, 10, 20, 45]
    with pytest.raises(ValueError, match="every_iterations must be a whole number from 1"):
        two_levels(None, every_iterations=0)


def test_between_questions_changed_loads_re_bind_the_plan_where_that_pays_or_it_does_not_fit():
    """All in B, busy by a half, takes 8 s, in A 4 s; the load of A alone asks for nothing."""
    small = replace(PAIR, domains=tuple(unit_domain(name, memory_bytes=40.0) for name in "AB"))
    looked = []

    def elsewhere(old, now):
        looked.append(now.domains[1].attainable_fraction)
        return plan(0, 0)

    levels = two_levels(lambda view: plan(1, 1), rebound=elsewhere)
    assert levels(view_of(small, None, (IDLE, IDLE))) == plan(1, 1)
    assert levels(view_of(small, plan(1, 1), (DomainLoad(utilisation=0.9), IDLE))) == plan(1, 1)
    assert looked == []
    assert levels(view_of(small, plan(1, 1))) == plan(0, 0)
    full = (IDLE, DomainLoad(memory_occupancy=0.5))
    assert levels(view_of(small, plan(1, 1), full)) == plan(0, 0)
    assert (levels.num_asked, levels.num_rebound, len(looked)) == (1, 2, 2)
