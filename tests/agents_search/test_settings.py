"""Degrees, settings and chains that the search goes through."""

import numpy as np
import pytest
from bound_cases import NODES, site, sites

from agents.decision.training_job import TrainingJob
from agents.search.chains import SiteChains, all_chains, changed_chains, near_chains
from agents.search.schedule_choice import survey_schedules, unpaced_schedules
from agents.search.search import PlanRequest, bound_settings
from agents.search.settings import BoundSetting, Degrees, degrees_of, most_context_of, num_stages_of
from agents.trainers.table import trainer_named

JOB = TrainingJob(model="llama2_7b", num_sequences=12)


@pytest.mark.parametrize(
    ("tensor", "data", "num_stages"),
    [(8, 1, 2), (4, 1, 4), (4, 2, 2), (4, 3, 0), (8, 2, 1), (1, 6, 0), (16, 1, 0)],
)
def test_stages_of_a_site_of_two_servers(tensor, data, num_stages):
    """Stages fill a part of a server that divides it, or whole servers."""
    degrees = Degrees(tensor=tensor, data=data)

    assert num_stages_of(site("A", 16, NODES), degrees) == num_stages


def test_degrees_of_one_server_of_8():
    """Twelve sequences: 1, 2, 3, 4 or 6 data ranks, of which 3 and 6 do not divide a server."""
    found = degrees_of(sites(site("A", 8)), JOB, sharding="optimiser")

    assert [(one.tensor, one.data) for one in found] == [
        *((1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (2, 4), (4, 1), (4, 2), (8, 1)),
    ]


def test_copies_of_weights_are_sharded_and_one_copy_is_not():
    for degrees in degrees_of(sites(site("A", 8)), JOB, sharding="optimiser"):
        assert degrees.sharding == ("optimiser" if degrees.data > 1 else "none")


@pytest.mark.parametrize(("name", "schedules"), [("megatron", 13), ("deepspeed", 1)])
def test_settings_of_a_trainer_have_its_schedules(name, schedules):
    """Plain 1F1B, and interleaving with 2, 3 or 4 chunks in groups of four sizes."""
    trainer = trainer_named(name)
    request = PlanRequest(topology=sites(site("A")), job=JOB, trainer=trainer)

    found = list(bound_settings(request))

    assert len({(s.schedule, s.num_chunks, s.group_factor) for s in found}) == schedules
    assert {s.is_blocking for s in found if s.schedule == "1f1b"} == {True}
    assert {s.gradient_precision for s in found} == {"fp32"}
    assert {s.is_even for s in found} == {name == "deepspeed"}
    assert all(12 % (s.microbatch_size * s.degrees.data) == 0 for s in found)


def test_names_of_interleaved_schedules_have_the_size_of_groups_over_devices():
    setting = BoundSetting(
        degrees=Degrees(tensor=8),
        microbatch_size=1,
        recomputation="flash",
        gradient_precision="fp32",
        schedule="interleaved_1f1b",
        num_chunks=2,
        group_factor=1.5,
    )

    assert setting.schedule_name(4) == "interleaved_1f1b_1.5x"
    assert setting.schedule_name(3) == "interleaved_1f1b_1.33333333x"  # groups of 4
    assert round(1.33333333 * 3) == 4


def test_a_request_refuses_what_is_not_searched():
    world = sites(site("A"))
    megatron = trainer_named("megatron")
    with pytest.raises(ValueError, match=r"schedules must be some of 1f1b, .* got 'zb_auto'"):
        PlanRequest(topology=world, job=JOB, trainer=megatron, schedules=("1f1b", "zb_auto"))


def test_schedules_without_a_pace_are_left_to_the_last_few_plans():
    reference, megatron = trainer_named("reference"), trainer_named("megatron")

    assert survey_schedules(reference, ("1f1b", "zb_auto")) == ("1f1b",)
    assert unpaced_schedules(reference, ("1f1b", "zb_auto")) == ("zb_auto",)
    assert "zb_h1" in survey_schedules(reference, ("zb_auto",))
    assert unpaced_schedules(megatron, ()) == ()
    assert survey_schedules(megatron, ()) == megatron.schedules


def test_all_chains_are_all_orders_of_all_sets():
    found = all_chains([0, 1, 2])

    assert len(found) == len(set(found)) == 3 + 6 + 6


def test_near_chains_go_on_to_the_nearest_site_that_can_be_reached():
    away_s = np.array([[0.0, 3.0, 1.0], [3.0, 0.0, 2.0], [1.0, 2.0, 0.0]])

    assert near_chains([0, 1, 2], away_s, 3) == [
        *((0,), (1,), (2,), (0, 2), (2, 0), (1, 2), (0, 2, 1), (1, 2, 0), (2, 0, 1)),
    ]
    away_s[0, 2] = np.inf
    away_s[0, 1] = np.inf
    assert [chain for chain in near_chains([0, 1, 2], away_s, 3) if chain[0] == 0] == [(0,)]


def test_of_each_length_the_few_chains_with_the_shortest_ways_stay():
    """Sites on a line, a unit apart: chains from inside it double back, others do not."""
    places = np.arange(8.0)
    found = near_chains(range(8), np.abs(places[:, None] - places[None, :]), 8)

    assert sorted({len(chain) for chain in found}) == [1, 2, 3, 4, 5, 6, 7, 8]
    longest = [chain for chain in found if len(chain) == 8]
    assert longest[:2] == [tuple(range(8)), tuple(range(8))[::-1]]
    assert all(len([one for one in found if len(one) == length]) <= 4 for length in range(1, 9))


def test_changed_chains_are_one_step_away():
    """Of 0-1 with a third site: one taken out, put in, exchanged, or the chain reversed."""
    assert set(changed_chains((0, 1), [0, 1, 2], 3)) == {
        *((0,), (1,), (1, 0), (2, 1), (0, 2), (2, 0, 1), (0, 2, 1), (0, 1, 2)),
    }


def test_chains_in_rows_keep_their_lengths():
    chains = SiteChains.of([(2,), (0, 1)])

    assert chains.lengths.tolist() == [1, 2]
    assert chains.rows[1].tolist() == [0, 1]


@pytest.mark.parametrize(("tokens", "most"), [(4096, 1), (16384, 2), (32768, 4), (131072, 8)])
def test_contexts_are_tried_for_long_sequences_alone(tokens, most):
    long = TrainingJob(model="llama2_7b", num_sequences=8, sequence_length=tokens)
    topology = sites(site("A", 64))

    assert most_context_of(topology, long) == most
    found = degrees_of(topology, long, sharding="none", most_context=most)
    assert {one.context for one in found} == {1, 2, 4, 8} & set(range(most + 1))
