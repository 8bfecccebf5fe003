"""Pipelines that another search has found: times again, and never a slower answer."""

from dataclasses import replace

import pytest
from bound_cases import site, sites

from agents.decision.training_job import TrainingJob
from agents.search.bound_search import search_bound
from agents.search.search import PlanRequest
from agents.search.workspace import Workspace
from agents.trainers.table import trainer_named
from des import Corrections
from des.world.lost_parts import without_domain, without_links

JOB = TrainingJob(model="llama2_7b", num_sequences=32)


def request(topology):
    return PlanRequest(topology=topology, job=JOB, trainer=trainer_named("megatron"))


def workspace_of(asked):
    return Workspace(topology=asked.topology, job=asked.job, corrections=asked.corrections)


def test_pipelines_are_timed_again_in_their_order_where_nothing_is_otherwise():
    asked = request(sites())
    near = search_bound(asked).near
    again = near.time_again(workspace_of(asked))

    assert [one.chains for one in again] == [one.chains for one in near.pipelines[: len(again)]]
    assert [one.estimate_s for one in again] == pytest.approx(
        [one.estimate_s for one in near.pipelines[: len(again)]], rel=0.05
    )


def test_pipelines_move_to_where_their_sites_are_and_those_with_a_lost_one_are_left_out():
    asked = request(sites())
    near = search_bound(asked).near
    workspace = workspace_of(request(without_domain(asked.topology, "A")))
    cut = workspace_of(request(without_links(sites(site("A"), site("B")), "A", "B")))

    assert all(set(one.chains[0]) <= {0, 1} for one in near.time_again(workspace))
    assert near.time_again(workspace)
    assert all(len(one.chains[0]) == 1 for one in near.time_again(cut))


@pytest.mark.parametrize("lost", ["A", "D", ""])
def test_of_many_sites_no_answer_is_slower_than_what_is_known_and_left(lost):
    """Six sites, more than all of whose chains are looked at."""
    asked = request(sites(*(site(name, 8 * (1 + at % 2)) for at, name in enumerate("ABCDEF"))))
    near = search_bound(asked).near
    other = replace(asked, corrections=Corrections(wan_bandwidth_factor=0.8))
    if lost:
        other = replace(asked, topology=without_domain(asked.topology, lost))
    known = near.time_again(workspace_of(other))
    found = search_bound(replace(other, settings=near.settings), near=near, is_best_alone=True)

    assert known
    assert found.best.figures.step_s <= known[0].estimate_s * (1.0 + 1e-9)
