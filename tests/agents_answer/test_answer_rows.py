"""Figures of an answer: means over a period, prices, changes of plan and takeovers."""

from dataclasses import replace

import numpy as np
import pytest

from agents.answer.answering import answer
from agents.answer.change import PlanChange, change_to
from agents.answer.config import Config
from agents.answer.judging import judged_plan
from agents.answer.question import UNLESS_GIVEN, PlanInForce
from agents.answer.reading import question_of
from agents.answer.rows import FamilyRow, at_par, quickest, row_of
from agents.answer.takeovers import takeovers
from agents.decision.plan_space import PlanSpace
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import WholeProblem
from agents.judge.mean_use import mean_use, step_usd
from des import (
    NO_CORRECTIONS,
    DiLoCo,
    Placement,
    Plan,
    StreamingDiLoCo,
    Topology,
    cost_of,
    migration_s,
    read_topology,
    simulate,
)
from des.plan.replacement import Replacement

WORLD = replace(read_topology("east_central_west"), movement=None)
JOB = TrainingJob(model="llama2_7b", num_sequences=8)
NUM_PARAMETERS = sum(JOB.workload(1).num_parameters)
ALONE = Plan(placement=Placement.parse("0*32"), schedule="1f1b")
SPREAD = Plan(placement=Placement.parse("0*11,1*11,2*10"), schedule="1f1b")
COPIES = replace(ALONE, replicas=(Placement.parse("1*32"), Placement.parse("2*32")))


def problem(topology: Topology = WORLD) -> WholeProblem:
    return WholeProblem(topology=topology, job=JOB, space=PlanSpace(microbatch_sizes=(1,)))


def row(plan: Plan, token_factor: float | None = None, on: Topology = WORLD) -> FamilyRow:
    whole = problem(on)
    return row_of(whole, judged_plan(whole, JOB.workload(1), plan), token_factor)


def test_a_pipeline_uses_what_its_iteration_does():
    found, result = row(SPREAD), simulate(WORLD, JOB.workload(1), SPREAD)

    assert found.step_s == result.makespan_s
    assert found.use.wan_bytes == result.communication_cost_bytes
    assert found.use.busy_s["East"] == result.stages[0].busy_s
    assert found.use.fullest == max(result.memory, key=lambda one: one.required_bytes)


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
    found = row(replace(COPIES, synchronisation=mode))
    period_bytes = 4.0 * NUM_PARAMETERS * mode.bits_per_value / 8.0

    assert found.use.wan_bytes == pytest.approx(period_bytes / 10)


def test_a_step_costs_what_the_prices_of_the_world_say():
    world = read_topology("aws_like").at_start()
    plan = Plan(placement=Placement.parse("0*16,2*16"), schedule="1f1b")
    judged = judged_plan(problem(world), JOB.workload(1), plan)
    use = mean_use(world, judged, NO_CORRECTIONS)

    expected = cost_of(simulate(world, JOB.workload(1), plan), world).total_usd
    assert step_usd(world, judged, use) == pytest.approx(expected)
    assert row(plan).usd is None


def test_the_quickest_at_the_prices_wins_and_a_bound_on_steps_may_overrule_it():
    slow, quick = row(SPREAD), row(replace(COPIES, synchronisation=DiLoCo()), token_factor=1e3)

    assert quick.is_marked
    assert quick.step_s < slow.step_s
    assert quickest((slow, quick)) is slow
    assert quickest((at_par(slow), at_par(quick))).judged == quick.judged
    assert quickest((slow, quick), most_slowdown=0.01) is quick


def test_a_plan_without_a_price_has_no_say_and_alone_needs_one():
    shrunk = row(replace(SPREAD, activation_compression=4.0))

    assert shrunk.title == "pipeline, activations / 4"
    assert quickest((shrunk, row(SPREAD))).judged.plan == SPREAD
    with pytest.raises(ValueError, match=r"token_factor must be given.*compressed activations"):
        quickest((shrunk,))


def change_between(
    old: FamilyRow, new: FamilyRow, replacement: Replacement = UNLESS_GIVEN
) -> PlanChange:
    """Change on the world from one plan, which can run, to another."""
    in_force = PlanInForce(workload=old.judged.workload, plan=old.judged.plan)
    return change_to(problem(), in_force, new, replacement, present=old)


def test_from_replicas_to_a_pipeline_nothing_moves_and_back_all_that_is_missing():
    there = change_between(row(COPIES), row(SPREAD))
    back = change_between(row(SPREAD), row(COPIES))
    state_bytes = 16.0 * NUM_PARAMETERS

    assert (there.num_bytes, there.change_s) == (0.0, UNLESS_GIVEN.restart_s)
    assert back.num_bytes == pytest.approx(2.0 * state_bytes)  # three copies, of which one is there
    assert back.change_s == migration_s(WORLD, JOB.workload(1), SPREAD, COPIES)
    assert back.steps_until_paid() is None or back.saved_s > 0.0


def test_a_change_has_paid_when_steps_saved_make_up_for_it():
    slow, quick = row(COPIES), row(SPREAD)
    change = change_between(slow, quick, Replacement(restart_s=100.0))
    steps = change.steps_until_paid()

    assert steps is not None
    assert change.gain == pytest.approx(1.0 - quick.step_s / slow.step_s)
    staying_s = steps * slow.step_s
    assert change.change_s + steps * quick.step_s <= staying_s
    assert change.change_s + (steps - 1) * quick.step_s > staying_s - slow.step_s


def test_the_plan_in_force_stays_at_no_cost():
    change = change_between(row(SPREAD), row(SPREAD))

    assert (change.stays, change.change_s, change.gain) == (True, 0.0, 0.0)
    assert change.steps_until_paid() is None


def winner(rows: tuple[FamilyRow, ...], factor: float) -> int:
    """Place of the quickest plan where all links have a multiple of their bandwidth."""
    faster = WORLD.scaled(np.full(6, factor), np.ones(6))
    there = tuple(row(each.judged.plan, on=faster) for each in rows)
    return there.index(quickest(there))


def test_another_family_takes_over_at_the_bandwidth_that_is_named_and_not_five_percent_before():
    rows = (row(ALONE), row(SPREAD), row(COPIES))
    found = takeovers(problem(), rows)

    assert found
    for each in found:
        back = 1.05 if each.bandwidth_factor < 1.0 else 1.0 / 1.05
        assert winner(rows, each.bandwidth_factor) == each.row
        assert winner(rows, back * each.bandwidth_factor) == rows.index(quickest(rows))
        slowest = min(link.bandwidth_bytes_per_s for link in WORLD.links)
        assert each.least_bytes_per_s == each.bandwidth_factor * slowest


def test_a_world_without_links_has_no_takeovers():
    alone = Topology.of([WORLD.domains[0]], [])
    whole = problem(alone)
    only = row_of(whole, judged_plan(whole, JOB.workload(1), ALONE), None)

    assert takeovers(whole, (only,)) == ()
    assert only.use.wan_bytes == 0.0


def test_fewer_copies_with_a_lower_price_in_tokens_stand_beside_the_quickest_step():
    question = question_of(
        Config(network="four_domains_1", job="four_domains_1", families="diloco")
    )
    quick, cheap = answer(question).rows
    assert quick.judged.family == cheap.judged.family == "diloco"
    assert quick.step_s < cheap.step_s
    assert cheap.priced_s < quick.priced_s
