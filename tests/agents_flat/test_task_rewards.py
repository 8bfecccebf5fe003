"""Rewards and metrics of a task, against cases worked out by hand."""

import pytest
from hand_tasks import ASYMMETRIC, ASYMMETRIC_S, SPLIT, TOGETHER, reward, task
from strategies import unit_domain, unit_workload

from agents.flat.task import RewardWeights
from des import Placement, Topology
from des.plan.replacement import Replacement


def test_reward_of_the_uniform_plan_by_hand():
    """No gain in time; U = 12 FLOPs / (2 FLOP/s x 12.25 s); communication as the base."""
    assert reward(task(), SPLIT) == pytest.approx(0.3 * 12 / (2 * ASYMMETRIC_S) - 0.3)


def test_reward_of_a_single_stage_by_hand():
    """12 s instead of 12.25 s, U = 12 / (2 x 12), no communication."""
    expected = 0.4 * (ASYMMETRIC_S - 12) / ASYMMETRIC_S + 0.3 * 0.5
    assert reward(task(), TOGETHER) == pytest.approx(expected)


def test_reward_of_twice_the_communication_by_hand():
    """Three layers over A, B, A have two borders; the uniform plan A, A, B has one."""
    workload = unit_workload([(1, 2)] * 3, num_microbatches=1, message_bytes=4.0)
    given = task(workload=workload)
    back_and_forth = Placement(domain_of_layer=(0, 1, 0))

    # Compute 3 x 3 s on the one microbatch; A->B 0.75 s, B->A 2.5 s, each way for each border.
    assert given.uniform_placement.domain_of_layer == (0, 0, 1)
    base_s, time_s = 9 + 0.75 + 2.5, 9 + 2 * (0.75 + 2.5)
    expected = 0.4 * (base_s - time_s) / base_s + 0.3 * 9 / (2 * time_s) - 0.3 * 2
    assert reward(given, back_and_forth) == pytest.approx(expected)


def test_reward_weights_are_the_callers():
    weights = RewardWeights(time=1.0, utilisation=0.0, communication=0.0)
    assert reward(task(weights=weights), TOGETHER) == pytest.approx(0.25 / ASYMMETRIC_S)

    weights = RewardWeights(time=0.0, utilisation=2.0, communication=5.0)
    expected = 2.0 * 12 / (2 * ASYMMETRIC_S) - 5.0
    assert reward(task(weights=weights), SPLIT) == pytest.approx(expected)


def test_reward_of_a_single_domain_has_no_term_for_communication():
    """Always the uniform plan, always busy: 0.4 x 0 + 0.3 x 1 - 0.3 x nothing."""
    assert reward(task(Topology.of([unit_domain("A")], [])), TOGETHER) == pytest.approx(0.3)


def test_reward_where_messages_are_empty_has_no_term_for_communication():
    workload = unit_workload([(1, 2), (1, 2)], num_microbatches=2, message_bytes=0.0)

    given = task(workload=workload)
    utilisation = given.simulate(ASYMMETRIC, SPLIT).utilisation
    assert reward(given, SPLIT) == pytest.approx(0.3 * utilisation)


def test_plan_over_memory_is_judged_as_if_it_fitted_then_fined():
    """Both layers hold 2 x 16 bytes of model state and 2 x 2 of activations: half over 24."""
    small = [unit_domain(name, memory_bytes=24.0) for name in "AB"]
    given = task(Topology.of(small, ASYMMETRIC.links))

    assert reward(given, SPLIT) == pytest.approx(reward(task(), SPLIT))  # 18 bytes each
    assert reward(given, TOGETHER) == pytest.approx(reward(task(), TOGETHER) - 1.5)


def test_metrics_by_hand():
    given = task()
    epoch = given.run_epoch(ASYMMETRIC, SPLIT, TOGETHER)

    assert given.metrics(epoch, given.baseline(ASYMMETRIC)) == pytest.approx(
        {
            "iteration_time_s": ASYMMETRIC_S,
            "utilisation": 12 / (2 * ASYMMETRIC_S),
            "communication_cost_bytes": 2 * 2 * 4,
            "bubble_fraction": 1 - 12 / (2 * ASYMMETRIC_S),
            "tokens_per_s": 2 / ASYMMETRIC_S,
            "num_stages": 2,
            "fits_memory": 1,
            "memory_overflow_fraction": 0,
            "migration_s": 0,
            "moved_bytes": 0,
            "baseline_iteration_time_s": ASYMMETRIC_S,
            "baseline_communication_cost_bytes": 16,
        }
    )


@pytest.mark.parametrize("replacement", [None, Replacement(), Replacement(restart_s=0)])
def test_all_metrics_are_floats_even_where_nothing_is_communicated(replacement):
    alone = Topology.of([unit_domain("A")], [])
    given = task(alone, replacement=replacement)
    epoch = given.run_epoch(alone, TOGETHER, TOGETHER)

    assert {type(value) for value in given.metrics(epoch, given.baseline(alone)).values()} == {
        float
    }


@pytest.mark.parametrize("field", ["time", "utilisation", "communication"])
@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf")])
def test_reward_weight_out_of_range_is_refused(field, weight):
    with pytest.raises(ValueError, match=f"reward weights: {field} must be finite and not neg"):
        RewardWeights(**{field: weight})
