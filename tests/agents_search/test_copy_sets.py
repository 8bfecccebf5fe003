"""Copies that differ: groups of sites, shares, what they exchange, and its price in tokens."""

from dataclasses import replace

import numpy as np
import pytest
from bound_cases import joined, site, sites
from hypothesis import given
from hypothesis import strategies as st

from agents.decision.token_prices import NOT_WAITED_FOR, beyond_published, price_of
from agents.decision.training_job import TrainingJob
from agents.search.bound_search import search_bound
from agents.search.copy_sets import MOST_COPIES, partitions
from agents.search.outer_modes import outer_modes
from agents.search.search import PlanRequest
from agents.trainers.table import trainer_named
from des import DecoupledDiLoCo, DiLoCo, StreamingDiLoCo, check_memory

JOB = TrainingJob(model="llama2_7b", num_sequences=32)
LARGE = TrainingJob(model="llama2_7b", num_sequences=256)


def searched(topology, name, job=JOB, **changes):
    request = PlanRequest(topology=topology, job=job, trainer=trainer_named(name), **changes)
    return search_bound(request)


def by_kind(rows):
    return {row.kind: row for row in rows}


def test_partitions_of_three_sites_by_hand():
    """Each pair of single sites, all three, and each pair together against the third."""
    found = {frozenset(groups) for groups in partitions([1.0] * 3, np.ones((3, 3)))}

    expected = [[(0,), (1,)], [(0,), (2,)], [(1,), (2,)], [(0,), (1,), (2,)]]
    expected += [[(0, 1), (2,)], [(0, 2), (1,)], [(0,), (1, 2)]]
    assert found == {frozenset(groups) for groups in expected}


@given(speeds=st.lists(st.floats(0.1, 10.0), min_size=5, max_size=20))
def test_groups_of_many_sites_are_apart_and_few(speeds):
    away_s = np.abs(np.subtract.outer(speeds, speeds))

    for groups in partitions(speeds, away_s):
        used = [site for group in groups for site in group]
        assert len(used) == len(set(used))
        assert 2 <= len(groups) <= MOST_COPIES


def test_modes_are_those_of_the_trainer():
    """FP8 at least and no exchange behind a backward pass in torchft; Megatron-LM has none."""
    assert outer_modes(trainer_named("megatron")) == ()
    assert outer_modes(trainer_named("torchtitan")) == (
        DiLoCo(steps_between=30, bits_per_value=32.0, behind_backward=False),
        StreamingDiLoCo(steps_between=30, bits_per_value=32.0),
        DiLoCo(steps_between=100, bits_per_value=8.0, behind_backward=False),
        StreamingDiLoCo(steps_between=100, bits_per_value=8.0),
    )
    *_, decoupled, last = outer_modes(trainer_named("reference"))
    assert last == StreamingDiLoCo(bits_per_value=4.0)
    how = {"quorum": 1, "grace_steps": 1.0, "overlap_steps": 1}
    assert decoupled == DecoupledDiLoCo(bits_per_value=4.0, **how)
    assert decoupled in outer_modes(trainer_named("ideal"))


def test_equal_copies_that_exchange_every_30_steps_take_half_a_step_and_their_part():
    """Half the sequences; 27 GB in FP32, a half of it there and back, once in 30 steps."""
    topology = joined((site("A"), site("B")), 1e9)
    rows = by_kind(searched(topology, "torchtitan", LARGE).rows)
    whole, alone = rows["diloco"], rows["single"]
    each_s = 4.0 * whole.bound.workload.sums_before.num_parameters[-1] / 1e9 / 30.0

    assert whole.condition == ""
    assert whole.bound.plan.shares == ()
    left_s = whole.figures.step_s - each_s
    assert 0.5 * alone.figures.step_s < left_s < 0.62 * alone.figures.step_s
    assert rows["streaming_diloco"].figures.step_s < whole.figures.step_s


def test_a_price_beyond_its_table_makes_the_answer_conditional():
    """The rarer exchange of fewer bits is quicker and no answer, unless its price is given."""
    topology = joined((site("A"), site("B")), 1e9)
    found = searched(topology, "reference")
    given_price = searched(topology, "reference", token_factor=1.01)

    for row in found.rows:
        assert beyond_published(row.bound.plan, row.bound.workload) == row.condition == ""
    assert {row.bound.plan.synchronisation.bits_per_value for row in found.conditional} == {4.0}
    for row in found.conditional:
        assert "exchanges every 100 steps, published every 30; 4 bits" in row.condition
        assert row.figures.step_s < found.best.figures.loss_s
    assert given_price.conditional == ()
    assert given_price.best.price.factor == 1.01
    least_s = min(row.figures.step_s for row in found.conditional)
    assert given_price.best.figures.loss_s == 1.01 * least_s


def test_learners_that_do_not_wait_are_named_apart_and_an_answer_at_a_given_price_alone():
    topology = joined((site("A"), site("B")), 1e9)
    free = searched(topology, "reference", families=("single", "decoupled_diloco"))
    given_price = searched(
        topology, "reference", families=("single", "decoupled_diloco"), token_factor=1.01
    )

    assert [row.kind for row in free.rows] == ["single"]
    assert [row.kind for row in free.conditional] == ["decoupled_diloco"]
    assert NOT_WAITED_FOR in free.conditional[0].condition
    assert given_price.best.kind == "decoupled_diloco"
    assert given_price.best.bound.step_s == free.conditional[0].bound.step_s


def test_learners_with_shares_that_cannot_be_level_are_quicker_than_copies_that_wait():
    """Of three sequences one site does two: with own clocks the other does as many steps more."""
    job, topology = (
        TrainingJob(model="llama2_7b", num_sequences=3),
        joined((site("A"), site("B")), 1e11),
    )
    rows = by_kind(searched(topology, "reference", job, token_factor=1.01).rows)
    own, waiting = rows["decoupled_diloco"], rows["diloco"]

    assert own.bound.plan.shares == waiting.bound.plan.shares == (2, 1)
    assert own.figures.step_s < 0.9 * waiting.figures.step_s


def test_rows_are_ranked_by_the_time_to_equal_loss():
    """Four copies of a small model need more tokens, which counts against them."""
    topology = joined(tuple(site(name, 8) for name in "ABCD"), 1e9)
    found = searched(topology, "reference")

    for row in found.rows:
        price = price_of(row.bound.plan, row.bound.workload)
        assert row.figures.token_factor == price.factor
        assert found.best.figures.loss_s <= row.figures.loss_s


def test_unequal_sites_get_shares_that_end_together():
    """Three times the GPUs do about three times the microbatches; equal ones wait for B."""
    topology = joined((site("A", 24), site("B", 8)), 1e12)
    row = by_kind(searched(topology, "reference").rows)["replicas"]
    first, second = row.bound.plan.microbatches_of_replicas(row.bound.workload.num_microbatches)
    chains = row.candidate.chains
    own = {chains[0][0]: first, chains[1][0]: second}

    assert 2.0 <= own[0] / own[1] <= 4.0
    check_memory(topology, row.bound.workload, row.bound.plan)
    busy = [row.busy_s[name] for name in ("A", "B")]
    assert min(busy) > 0.8 * max(busy)


def test_torchtitan_gives_all_copies_equal_shares():
    topology = joined((site("A", 24), site("B", 8)), 1e9)
    found = searched(topology, "torchtitan")

    for row in (*found.rows, *found.conditional):
        plan, count = row.bound.plan, row.bound.workload.num_microbatches
        assert len(set(plan.microbatches_of_replicas(count))) == 1


def test_a_price_below_that_of_unchanged_training_is_refused():
    with pytest.raises(ValueError, match=r"token_factor must be at least 1 and finite, got 0\.5"):
        searched(sites(), "reference", token_factor=0.5)


def test_an_outer_optimiser_takes_its_memory():
    """Copies fit into 8 GPUs without the 8 bytes a parameter of DiLoCo, and not with them."""
    small = tuple(replace(site(name, 8), gpu_memory_bytes=19e9) for name in "AB")
    large = tuple(replace(one, gpu_memory_bytes=26e9) for one in small)

    kinds = [
        {row.kind for row in searched(joined(each, 1e9), "torchtitan", LARGE).rows}
        for each in (small, large)
    ]
    assert "single" in kinds[0]
    assert not kinds[0] & {"diloco", "streaming_diloco"}
    assert kinds[1] & {"diloco", "streaming_diloco"}
