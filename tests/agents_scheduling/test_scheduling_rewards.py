"""Rewards and prices of moves by hand: two domains of 1 FLOP/s at half their speed."""

from dataclasses import replace

import numpy as np
import pytest
from small_tasks import PAIR, few
from strategies import plan, unit_workload

from agents.judge.step_times import step_wan_bytes
from agents.scheduling.batch import SchedulingBatch
from agents.scheduling.make_task import make_scheduling_task
from agents.scheduling.plan_maker import REASONS
from agents.scheduling.task import DESCRIBED, FIRST_KNOWN, KEEP, Described
from des.plan.replacement import Replacement

ITERATION_S = 2 * 4 * (1 + 2) / 0.5
"""Two microbatches through four layers in one domain at half its speed."""


def begun(**changes):
    task = make_scheduling_task(**(PAIR | changes))
    batch = SchedulingBatch(task, [np.random.default_rng(0)])
    batch.reset()
    return task, batch


def describing(task, *groups, tilts=(1.0, 1.0), mode=0):
    return task.action.encoded(Described(groups, tilts, schedule=0, mode=mode))[np.newaxis]


def test_an_epoch_at_half_speed_does_half_of_base():
    task, batch = begun(families=("single",))
    keep = np.zeros((1, len(task.action.sizes)), dtype=np.int64)
    step = batch.step(keep)

    assert task.reference_s == ITERATION_S / 2
    assert step.metrics["num_iterations"][0] == 48.0 / ITERATION_S
    assert step.rewards[0] == 0.5


def test_weights_count_speed_utilisation_and_bytes_of_changes_too():
    """Half of base speed with half of two GPUs idle is a quarter of the peak; a move sends 4 b.

    The even pipeline sends ``even`` bytes an iteration, two of which base has time for.
    """
    task, batch = begun(families=("single",), objective="4,3,3")
    workload = task.setting.workload
    keep = np.zeros((1, len(task.action.sizes)), dtype=np.int64)

    assert batch.step(keep).rewards[0] == pytest.approx(0.4 * 0.5 + 0.3 * 0.25)
    moved = batch.step(describing(task, (1,)))
    speed = moved.metrics["num_iterations"][0] / 2.0
    even = step_wan_bytes(workload, [plan(0, 0, 1, 1)])[0]
    part = 4 * workload.state_bytes / (2.0 * even)
    assert moved.rewards[0] == pytest.approx(0.4 * speed + 0.3 * speed / 2.0 - 0.3 * part)


def test_an_objective_of_an_environment_has_no_cost():
    with pytest.raises(ValueError, match="objective must be time or three weights, got 'cost'"):
        make_scheduling_task(**PAIR, objective="cost")


def test_a_move_sends_the_model_state_and_restarts():
    task, batch = begun(families=("single",))
    here, there = describing(task, (0,)), describing(task, (1,))
    first, moved = batch.step(here), batch.step(there)
    num_bytes = 4 * task.setting.workload.state_bytes  # one parameter a layer

    assert first.metrics["change_s"][0] == 0.0
    assert moved.metrics["moved_bytes"][0] == num_bytes
    assert moved.metrics["change_s"][0] == pytest.approx(num_bytes / 100.0 + 0.25 + 3.0)
    assert moved.metrics["num_iterations"][0] == pytest.approx(
        (48.0 - moved.metrics["change_s"][0]) / ITERATION_S
    )


def test_a_move_costs_a_restart_alone_where_bytes_are_free():
    task, batch = begun(
        families=("single",), replacement=Replacement(restart_s=7.0, pays_bytes=False)
    )
    batch.step(describing(task, (0,)))
    step = batch.step(describing(task, (1,)))

    assert (step.metrics["change_s"][0], step.metrics["moved_bytes"][0]) == (7.0, 0.0)


def test_a_plan_described_as_it_is_already_costs_nothing():
    task, batch = begun()
    described = describing(task, (1, 0))
    batch.step(described)
    plan = batch.plans[0]
    step = batch.step(described)

    assert step.metrics["change_s"][0] == 0.0
    assert batch.plans[0] is plan


def test_a_domain_that_counts_as_quicker_gets_more_layers():
    task, batch = begun()
    shares = []
    for tilts in ((1.5, 2.0 / 3.0), (1.0, 1.0), (2.0 / 3.0, 1.5)):
        batch.step(describing(task, (0, 1), tilts=tilts))
        shares.append(batch.plans[0].plan.placement.domain_of_layer.count(1))

    assert shares == sorted(shares)
    assert shares[0] < shares[-1]


def narrow():
    """The pair with memory for three layers of model state and a little more each."""
    pair, job = PAIR["network"], PAIR["model"]
    memory_bytes = 3.5 * job.state_bytes
    domains = tuple(replace(one, gpu_memory_bytes=memory_bytes) for one in pair.domains)
    return replace(pair, domains=domains)


@pytest.mark.parametrize(
    ("groups", "changes", "reason"),
    [
        ((), {}, "no_domain"),
        (((0,),), {"network": narrow()}, "memory"),
        (
            ((0, 1),),
            {"model": unit_workload([(1, 2)], num_microbatches=2, message_bytes=1.0)},
            "layers",
        ),
        (((0,), (1,)), {}, "family"),
        (((0, 1),), {"families": ("single",)}, "family"),
    ],
)
def test_a_plan_that_cannot_be_taken_leaves_the_last_and_costs_the_penalty(groups, changes, reason):
    task, batch = begun(penalty=0.25, **changes)
    keep = np.zeros((1, len(task.action.sizes)), dtype=np.int64)
    kept, refused = batch.step(keep), batch.step(describing(task, *groups))

    assert REASONS[int(refused.metrics["fallback"][0])] == reason
    assert batch.plans[0] is task.start
    assert refused.metrics["num_iterations"][0] == kept.metrics["num_iterations"][0]
    assert refused.rewards[0] == pytest.approx(kept.rewards[0] - 0.25)


def test_known_plans_are_taken_by_number():
    task = few()
    batch = SchedulingBatch(task, [np.random.default_rng(0)] * 4)
    batch.reset([0] * 4)
    actions = np.zeros((4, len(task.action.sizes)), dtype=np.int64)
    actions[:, 0] = [KEEP, FIRST_KNOWN, FIRST_KNOWN + 2, DESCRIBED]
    batch.step(actions)

    assert batch.plans == [task.known[each] for each in (0, 0, 2, 0)]
