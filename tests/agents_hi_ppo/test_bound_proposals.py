"""Bound plans of what policies propose: judged as they run, the quickest first, and refusals."""

from dataclasses import replace

import pytest
from bound_cases import bind_plan, site, sites
from small_policies import placement_policy, situation_on

from agents.decision.training_job import TrainingJob
from agents.hi_ppo.bound_proposals import (
    search_proposed,
    sketched_orders,
    sketching,
)
from agents.hi_ppo.placement.proposals import Proposer
from agents.judge.look_ahead import LookAhead
from agents.search.bound_search import search_bound
from agents.search.objective import PlanObjective
from agents.search.search import PlanRequest
from agents.trainers.plan_checks import check_plan
from agents.trainers.table import TRAINERS, trainer_named
from des import InfeasiblePlacementError, Placement, Plan, simulate

MEGATRON = trainer_named("megatron")
TWO = sites(site("A"), site("B", 8))
REQUEST = PlanRequest(
    topology=TWO, job=TrainingJob(model="llama2_7b", num_sequences=16), trainer=MEGATRON
)
BINDING = [name for name, trainer in TRAINERS.items() if not trainer.is_ideal]


def proposer() -> Proposer:
    """Untrained weights, whose look-ahead meets all orders of two domains."""
    return Proposer(placement_policy(), look_ahead=LookAhead(budget=300))


@pytest.mark.parametrize("name", BINDING)
def test_proposals_in_all_orders_are_no_slower_than_the_pipelines_of_the_search(name):
    """Two domains have four orders, all of them proposed; and each row runs as it says."""
    request = replace(REQUEST, trainer=trainer_named(name))
    found = search_proposed(request, sketching(proposer()))
    searched = {row.kind: row.bound for row in search_bound(request).rows}

    assert {row.kind for row in found.rows} == {"single", "pipeline"}
    for row in found.rows:
        bound = row.bound
        assert simulate(TWO, bound.workload, bound.plan).makespan_s == bound.step_s
        assert bound.step_s <= searched[row.kind].step_s
        check_plan(request.trainer, TWO, bound.workload, bound.plan)
    assert found.best.figures.step_s == min(row.figures.step_s for row in found.rows)


def test_the_best_sketches_are_bound_with_their_own_layers_too():
    """Never slower than the binding of what perfect devices like best, in the same microbatches."""
    found = search_proposed(REQUEST, sketching(proposer()))
    workload = found.best.bound.workload
    situation = situation_on(TWO, workload)
    sketch = proposer().propose(situation, num_plans=1).plans[0]

    assert found.best.bound.step_s <= bind_plan(TWO, workload, sketch, MEGATRON).step_s


def test_a_limit_and_the_plan_in_force_count_as_in_the_search():
    best = search_proposed(REQUEST, sketching(proposer())).best.bound
    few = replace(REQUEST, microbatch_sizes=(8,))
    slower = search_proposed(few, sketching(proposer())).best.bound

    assert best.step_s < slower.step_s
    assert search_proposed(few, sketching(proposer()), in_force=best).best.bound == best
    with pytest.raises(ValueError, match="at_most: must be at least"):
        search_proposed(REQUEST, sketching(proposer()), PlanObjective(most_s=0.5 * best.step_s))


def test_a_job_that_fits_nowhere_is_refused():
    large = replace(REQUEST, job=TrainingJob(model="llama3_405b", num_sequences=16))

    with pytest.raises(InfeasiblePlacementError, match="fits into the memory of 2 domains"):
        search_proposed(large, sketching(proposer()))


def test_more_domains_than_the_policies_take_are_refused_with_their_number():
    many = sites(*(site(f"S{number}", 8) for number in range(17)))

    with pytest.raises(ValueError, match="must have at most 16 domains, got 17; the search takes"):
        search_proposed(replace(REQUEST, topology=many), sketching(proposer()))


def test_orders_are_those_of_each_pipeline_once():
    plan = Plan(placement=Placement.parse("0*3,1*5"), replicas=(Placement.parse("2*8"),))

    assert sketched_orders([plan, replace(plan, replicas=())]) == ((0, 1), (2,))
