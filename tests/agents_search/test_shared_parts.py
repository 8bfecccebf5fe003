"""Searches that share their parts: what they find is what each finds by itself."""

from dataclasses import replace

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from search_candidates import sites_of_servers

from agents.answer.sureness import other_requests
from agents.decision.training_job import TrainingJob
from agents.search.bound_search import proven_bound_s, search_bound
from agents.search.objective import PlanObjective
from agents.search.search import PlanRequest
from agents.search.shared_parts import SharedParts
from agents.trainers.table import TRAINERS
from des import InfeasiblePlacementError

BOUND = [trainer for trainer in TRAINERS.values() if not trainer.is_ideal]
JOB = TrainingJob(model="llama2_7b", num_sequences=8, sequence_length=2048)


def outcome(request, objective=None, shared=None):
    """The search's result and its bound, or why there is none."""
    try:
        found = search_bound(request, objective, shared=shared)
    except InfeasiblePlacementError as error:
        return str(error)
    return found, proven_bound_s(request, shared)


@settings(max_examples=examples(20))
@given(
    topology=sites_of_servers(max_sites=2),
    trainer=st.sampled_from(BOUND),
    objective=st.sampled_from([None, PlanObjective(kind="weights", weights=(0.5, 0.3, 0.2))]),
)
def test_a_search_that_shares_finds_what_it_finds_by_itself(topology, trainer, objective):
    """Two sites have parts of all kinds: of each alone, of both, and of what other cases lose."""
    shared, asked = SharedParts(), PlanRequest(topology=topology, job=JOB, trainer=trainer)
    first = outcome(asked, objective, shared)

    assert first == outcome(asked, objective)
    others = [replace(asked, trainer=one) for one in BOUND]
    if not isinstance(first, str):
        others += [other for _, other in other_requests(asked, first[0].best)]
    for other in others:
        alone = outcome(other, objective)
        assert outcome(other, objective, shared) == alone
        if not isinstance(alone, str):
            best = search_bound(other, objective, shared=shared, is_best_alone=True).best
            assert best == alone[0].best


def test_a_part_is_worked_out_once_and_equal_values_have_one_number():
    shared, made = SharedParts(), []

    def work_out():
        made.append(1)
        return len(made)

    assert [shared.part("a", work_out), shared.part("a", work_out)] == [1, 1]
    assert shared.part("b", work_out) == 2
    assert (
        shared.number(JOB)
        == shared.number(replace(JOB))
        != shared.number(replace(JOB, model="llama2_13b"))
    )
