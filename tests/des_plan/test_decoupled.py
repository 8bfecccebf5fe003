"""Decoupled DiLoCo: what a plan may say, merges by hand, and learners that wait for all."""

import re
from dataclasses import replace

import pytest
from strategies import plan, unit_workload, world

from des import DecoupledDiLoCo, DiLoCo, Plan, StreamingDiLoCo, lower
from des.plan.buckets import buckets_behind
from des.plan.learners import (
    Learners,
    has_own_clocks,
    learners_of,
    outer_steps,
    require_one_clock,
)
from des.plan.synchronisation import ReplicatedModel

JOB = unit_workload([(1, 2)] * 4, num_microbatches=6)
PAIR = world("AB", {"AB": (1.0, 0.1), "BA": (1.0, 0.1)})


def copies(mode, count=2, **fields):
    """A copy of the model in each of some domains."""
    first, *others = [plan(*[number] * 4).placement for number in range(count)]
    return Plan(placement=first, replicas=tuple(others), synchronisation=mode, **fields)


def two(**fields):
    """A learner of steps of 1 s and one of 3 s, that report every second step."""
    mode = DecoupledDiLoCo(steps_between=2, **fields)
    return Learners(mode=mode, step_s=(1.0, 3.0), tokens=(10, 20), merge_s=0.5)


@pytest.mark.parametrize(
    ("fields", "merges"),
    [
        # Who reports is merged at once: A at 2, 4.5 and 7 s, B at 6 s; A waits 0.5 s each time.
        ({}, [(2.0, "A"), (4.5, "A"), (6.0, "B")]),
        # Two steps of grace, 2 s for A: B, at 6 s, comes too late; the next merge has both.
        ({"grace_steps": 2.0}, [(4.0, "A"), (6.5, "AB")]),
        # Four steps of grace: no longer than until B reports.
        ({"grace_steps": 5.0}, [(6.0, "AB")]),
        ({"quorum": 2}, [(6.0, "AB")]),
        # A goes on for a step while it is merged, so it reports every 2 s.
        ({"overlap_steps": 1}, [(2.0, "A"), (4.0, "A"), (6.0, "AB")]),
    ],
)
def test_two_learners_are_merged_as_by_hand(fields, merges):
    found = outer_steps(two(**fields), 1)

    assert [one.begin_s for one in found] == [begin_s for begin_s, _ in merges]
    assert [one.end_s for one in found] == [begin_s + 0.5 for begin_s, _ in merges]
    assert [one.members for one in found] == [("A" in who, "B" in who) for _, who in merges]


def test_merged_tokens_and_mean_steps_of_two_learners_are_those_by_hand():
    """Five steps of A and one of B in 6 s: (50 + 20) / 6 tokens a second, 30 in a step of both."""
    one = two(overlap_steps=1)
    steps = outer_steps(one, 4)

    assert one.own_steps_s(steps) == (1.0, 3.0)
    assert one.mean_step_s([1.0, 3.0]) == pytest.approx(30.0 / (10.0 + 20.0 / 3.0))
    assert one.merge_tokens(steps[:3]) == 2 * (3 * 10 + 20)


@pytest.mark.parametrize(("overlap_steps", "step_s"), [(0, 1.0), (1, 0.5), (2, 0.2)])
def test_exposed_time_is_what_no_step_of_overlap_hides(overlap_steps, step_s):
    model = ReplicatedModel(num_parameters=1.0, num_layers=4, step_time_s=step_s)
    mode = DecoupledDiLoCo(steps_between=4, overlap_steps=overlap_steps)

    assert mode.exposed_s(1.0, model) == pytest.approx(max(0.0, 1.0 - overlap_steps * step_s))


@pytest.mark.parametrize("step", [0, 2, 3])
@pytest.mark.parametrize("quorum", [1, 2])
def test_a_step_of_all_is_the_program_of_diloco(step, quorum):
    """Where all begin a step together, whatever the quorum; the exchange comes after it."""
    decoupled = copies(DecoupledDiLoCo(steps_between=4, quorum=quorum))
    waiting = copies(DiLoCo(steps_between=4, behind_backward=False))
    found, known = (lower(PAIR, JOB, one, step=step) for one in (decoupled, waiting))

    assert found.to_bytes() == known.to_bytes()


@pytest.mark.parametrize("step", [0, 3])
def test_with_overlap_the_exchange_is_that_of_streaming_in_one_fragment(step):
    decoupled = copies(DecoupledDiLoCo(steps_between=4, overlap_steps=2))
    streaming = copies(StreamingDiLoCo(steps_between=4, layers_per_fragment=4, overlap_steps=2))

    assert buckets_behind(JOB, decoupled, step) == buckets_behind(JOB, streaming, step)
    assert lower(PAIR, JOB, decoupled, step=step).to_bytes() == (
        lower(PAIR, JOB, streaming, step=step).to_bytes()
    )


def test_learners_share_microbatches_and_have_pipelines_of_their_own():
    decoupled = copies(DecoupledDiLoCo(steps_between=4), shares=(4, 2))
    found = learners_of(JOB, decoupled)

    assert [own.num_microbatches for own, _ in found] == [4, 2]
    assert [one.placement for _, one in found] == list(decoupled.placements)
    assert not any(one.replicas or has_own_clocks(one) for _, one in found)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"steps_between": 1}, "steps_between must be at least 2"),
        ({"steps_between": 0}, "steps_between must be a whole number"),
        ({"quorum": 0}, "quorum must be a whole number"),
        ({"quorum": 1.5}, "quorum must be a whole number"),
        ({"grace_steps": -1.0}, "grace_steps must be finite and not negative, got -1.0"),
        ({"grace_steps": float("nan")}, "grace_steps"),
        ({"overlap_steps": 100}, "overlap_steps must be a whole number from 1 to 99, got 100"),
        ({"bits_per_value": 0.0}, "bits_per_value"),
        ({"outer_state": "disk"}, "outer_state must be one of gpu, cpu; got 'disk'"),
    ],
)
def test_a_wrong_mode_is_refused(fields, message):
    with pytest.raises(ValueError, match=f"Decoupled DiLoCo: .*{re.escape(message)}"):
        DecoupledDiLoCo(**fields)


def test_a_quorum_of_more_learners_than_there_are_is_refused():
    with pytest.raises(ValueError, match=r"quorum must be at most the 2 learners.*got 3"):
        copies(DecoupledDiLoCo(quorum=3))
    with pytest.raises(ValueError, match=r"share no domain.*shares_domains=True"):
        copies(DecoupledDiLoCo(), shares_domains=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step_s": (1.0, 0.0)}, "step_s must be positive"),
        ({"merge_s": -0.5}, "merge_s must be finite and not negative"),
        ({"tokens": (1,)}, "got 2 and 1, and a quorum of 1"),
        ({"mode": DecoupledDiLoCo(quorum=3)}, "got 2 and 2, and a quorum of 3"),
    ],
)
def test_wrong_learners_are_refused(changes, message):
    with pytest.raises(ValueError, match=f"learners: .*{message}"):
        replace(two(), **changes)


def test_where_a_step_is_one_of_all_other_learners_are_refused():
    require_one_clock("epoch", copies(DecoupledDiLoCo(quorum=2)))
    with pytest.raises(ValueError, match="epoch: quorum of the plan must be all 2 learners"):
        require_one_clock("epoch", copies(DecoupledDiLoCo(quorum=1)))
