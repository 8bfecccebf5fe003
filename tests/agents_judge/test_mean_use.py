"""Use of links and its cost, as means over a period of exchanges."""

from dataclasses import replace

import pytest

from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import JudgedPlan
from agents.judge.mean_use import mean_use, step_usd
from agents.judge.step_times import mean_step
from des import (
    NO_CORRECTIONS,
    DiLoCo,
    Placement,
    Plan,
    StreamingDiLoCo,
    Topology,
    cost_of,
    read_topology,
    simulate,
)

WORLD = replace(read_topology("east_central_west"), movement=None)
WORKLOAD = TrainingJob(model="llama2_7b", num_sequences=8).workload(1)
ALONE = Plan(placement=Placement.parse("0*32"), schedule="1f1b")
SPREAD = Plan(placement=Placement.parse("0*11,1*11,2*10"), schedule="1f1b")
COPIES = replace(ALONE, replicas=(Placement.parse("1*32"), Placement.parse("2*32")))


def judged(plan: Plan, world: Topology = WORLD) -> JudgedPlan:
    step_s = mean_step(world, WORKLOAD, plan, NO_CORRECTIONS)[0]
    return JudgedPlan(workload=WORKLOAD, plan=plan, step_s=step_s)


def test_a_pipeline_uses_what_its_iteration_does():
    use, result = mean_use(WORLD, judged(SPREAD), NO_CORRECTIONS), simulate(WORLD, WORKLOAD, SPREAD)

    assert use.wan_bytes == result.communication_cost_bytes
    assert use.busy_s["East"] == result.stages[0].busy_s
    assert use.fullest == max(result.memory, key=lambda one: one.required_bytes)


@pytest.mark.parametrize(
    "mode",
    [
        DiLoCo(steps_between=10),
        StreamingDiLoCo(steps_between=10, overlap_steps=1),
        StreamingDiLoCo(steps_between=10, overlap_steps=0, bits_per_value=4.0),
    ],
)
def test_every_parameter_crosses_a_ring_once_a_period(mode):
    """3 replicas send 2 (R - 1) = 4 times the parameters in all, in the bits of the mode."""
    use = mean_use(WORLD, judged(replace(COPIES, synchronisation=mode)), NO_CORRECTIONS)
    period_bytes = 4.0 * sum(WORKLOAD.num_parameters) * mode.bits_per_value / 8.0

    assert use.wan_bytes == pytest.approx(period_bytes / 10)


def test_a_step_costs_what_the_prices_of_the_world_say():
    world = read_topology("aws_like").at_start()
    plan = Plan(placement=Placement.parse("0*16,2*16"), schedule="1f1b")
    own = judged(plan, world)

    expected = cost_of(simulate(world, WORKLOAD, plan), world).total_usd
    assert step_usd(world, own, mean_use(world, own, NO_CORRECTIONS)) == pytest.approx(expected)
    plain = judged(SPREAD)
    assert step_usd(WORLD, plain, mean_use(WORLD, plain, NO_CORRECTIONS)) is None
