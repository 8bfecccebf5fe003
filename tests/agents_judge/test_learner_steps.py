"""Mean steps of learners with clocks of their own: equal engines, and DiLoCo as a special case."""

import dataclasses
import math

import pytest
from examples import examples
from family_plans import families
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import corrections, plan, topologies, unit_workload, workloads, world

from agents.decision.whole_plan import JudgedPlan
from agents.judge.learner_steps import MEASURED_PERIODS, merging
from agents.judge.mean_use import mean_use
from agents.judge.step_times import mean_step, step_times_s
from des import (
    NO_CORRECTIONS,
    ConcurrentJob,
    DecoupledDiLoCo,
    DiLoCo,
    Movement,
    Plan,
    StreamingDiLoCo,
    TrainingRun,
    UniformLaw,
    run_training,
    simulate,
)
from des.plan.learners import Learners, learners_of
from des.simulation.iteration import exchange_behind_s
from des.simulation.shared_links import iterate_together
from des.training.epoch import simulate_epoch
from des.training.learners import run_learners

TWO_LAYERS = unit_workload([(1, 2)] * 2, num_microbatches=4)
"""6 s a microbatch on a domain of 1 FLOP/s; gradients of 2 x 2 bytes."""

PAIR = world("AB", {"AB": (1.0, 0.0), "BA": (1.0, 0.0)})
FOREVER = math.inf


def two(mode, **fields) -> Plan:
    """A copy of the model in each of two domains."""
    return dataclasses.replace(
        plan(0, 0), replicas=(plan(1, 1).placement,), synchronisation=mode, **fields
    )


def modes(num_learners):
    """Ways to merge, whose quorum may be all learners."""
    return st.builds(
        DecoupledDiLoCo,
        steps_between=st.integers(2, 5),
        bits_per_value=st.sampled_from([4.0, 16.0]),
        quorum=st.integers(1, num_learners),
        grace_steps=st.sampled_from([0.0, 0.5, 3.0]),
        overlap_steps=st.integers(0, 1),
    )


@settings(max_examples=examples(40), deadline=None)
@given(
    data=st.data(),
    topology=topologies(min_domains=2, max_domains=4),
    workload=workloads(num_layers=5, max_microbatches=5),
    found=corrections(),
)
def test_both_engines_have_equal_mean_steps_to_the_last_bit(data, topology, workload, found):
    """Programs by SimPy and learners as processes; compiled programs and the recursion."""
    topology = dataclasses.replace(topology, movement=None)
    copies = data.draw(families(topology, workload))
    if not copies.replicas or copies.exchange.sharded:
        return
    count = len(copies.placements)
    mode = dataclasses.replace(data.draw(modes(count)), quorum=data.draw(st.integers(1, count - 1)))
    decoupled = dataclasses.replace(copies, synchronisation=mode)
    alone = learners_of(workload, decoupled)
    learners = Learners(
        mode=mode,
        step_s=tuple(simulate(topology, own, one, found).makespan_s for own, one in alone),
        tokens=tuple(own.tokens_per_iteration for own, _ in alone),
        merge_s=exchange_behind_s(
            topology, workload, merging(decoupled), mode.steps_between - 1, found
        ),
    )
    longest_s = max(learners.step_s) * mode.steps_between + learners.merge_s
    steps = run_learners(learners, 4.0 * (2 + MEASURED_PERIODS) * longest_s).outer_steps
    num_merged, until = [0] * count, 0
    while min(num_merged) < 1 + MEASURED_PERIODS:
        num_merged = [
            own + is_in for own, is_in in zip(num_merged, steps[until].members, strict=True)
        ]
        until += 1

    assert step_times_s(topology, workload, [decoupled], found)[0] == learners.mean_step_s(
        learners.own_steps_s(steps[:until])
    )


@settings(max_examples=examples(30), deadline=None)
@given(
    data=st.data(),
    topology=topologies(min_domains=2, max_domains=4),
    workload=workloads(num_layers=5, max_microbatches=5),
)
def test_a_quorum_of_all_is_diloco_to_the_last_bit(data, topology, workload):
    """Whatever the grace, which ends when all have reported; with overlap, of one fragment."""
    topology = dataclasses.replace(topology, movement=None)
    copies = data.draw(families(topology, workload))
    if not copies.replicas or copies.exchange.sharded:
        return
    mode = dataclasses.replace(data.draw(modes(2)), quorum=len(copies.placements))
    same = {"steps_between": mode.steps_between, "bits_per_value": mode.bits_per_value}
    known = DiLoCo(**same, behind_backward=False)
    if mode.overlap_steps:
        known = StreamingDiLoCo(**same, layers_per_fragment=5, overlap_steps=mode.overlap_steps)
    decoupled, waiting = (dataclasses.replace(copies, synchronisation=one) for one in (mode, known))

    assert mean_step(topology, workload, decoupled, NO_CORRECTIONS) == (
        mean_step(topology, workload, waiting, NO_CORRECTIONS)
    )
    run = TrainingRun(num_iterations=7, epoch_s=FOREVER)
    histories = [run_training(topology, workload, one, run) for one in (decoupled, waiting)]
    assert histories[0].iterations == histories[1].iterations


@pytest.mark.parametrize("overlap_steps", [0, 1])
def test_learners_that_are_alike_and_wait_for_nobody_are_as_quick_as_diloco(overlap_steps):
    """They report at one moment, so a quorum of one merges them all."""
    mode = DecoupledDiLoCo(steps_between=10, overlap_steps=overlap_steps)
    all_of_them = dataclasses.replace(mode, quorum=2)
    alone, together = (
        mean_step(PAIR, TWO_LAYERS, two(one), NO_CORRECTIONS) for one in (mode, all_of_them)
    )

    assert alone == pytest.approx(together)


def test_a_quick_learner_does_not_wait_by_hand():
    """A does a microbatch of 6 s a step, B three; a merge sends 4 bytes each way in 4 s.

    So A needs 64 s for ten steps and B 184 s, and both together see four microbatches in
    4 / (1 / 6.4 + 3 / 18.4) s; only the merge at 1,468 s is one of both. DiLoCo has steps of B.
    """
    mode, waiting = (
        DecoupledDiLoCo(steps_between=10),
        DiLoCo(steps_between=10, behind_backward=False),
    )
    step_s, wan_bytes = mean_step(PAIR, TWO_LAYERS, two(mode, shares=(1, 3)), NO_CORRECTIONS)
    diloco_s, _ = mean_step(PAIR, TWO_LAYERS, two(waiting, shares=(1, 3)), NO_CORRECTIONS)

    assert diloco_s == pytest.approx(18.4)
    assert step_s == pytest.approx(4.0 / (1.0 / 6.4 + 3.0 / 18.4))
    assert wan_bytes == pytest.approx(8.0 * step_s * (1.0 / 64.0 + 1.0 / 184.0), rel=0.05)


def test_steps_of_learners_are_those_of_programs_on_one_network_each_with_its_own_clock():
    """Three steps of A while B does one; each is in its own domain, so no message meets another."""
    decoupled = two(DecoupledDiLoCo(), shares=(1, 3))
    jobs = [
        ConcurrentJob(workload=own, plan=one) for own, one in learners_of(TWO_LAYERS, decoupled)
    ]
    ends_s = iterate_together(PAIR, jobs, [3, 1])
    each_s = [simulate(PAIR, job.workload, job.plan).makespan_s for job in jobs]

    assert ends_s[0] == pytest.approx([each_s[0], 2 * each_s[0], 3 * each_s[0]])
    assert ends_s[1] == pytest.approx([each_s[1]])


def test_use_of_links_and_domains_is_that_of_own_clocks():
    """A domain that never waits computes all the time; links carry a ring for each merge."""
    decoupled = two(DecoupledDiLoCo(steps_between=10, overlap_steps=2), shares=(1, 3))
    step_s, wan_bytes = mean_step(PAIR, TWO_LAYERS, decoupled, NO_CORRECTIONS)
    judged = JudgedPlan(workload=TWO_LAYERS, plan=decoupled, step_s=step_s)
    use = mean_use(PAIR, judged, NO_CORRECTIONS)

    assert use.busy_s["A"] == pytest.approx(step_s)
    assert use.busy_s["B"] == pytest.approx(step_s)
    assert use.wan_bytes == pytest.approx(wan_bytes)
    assert use.busy_s["A->B"] == pytest.approx(wan_bytes / 2.0)


def test_use_of_learners_that_are_alike_is_that_of_diloco():
    modes_of = DecoupledDiLoCo(steps_between=10), DiLoCo(steps_between=10, behind_backward=False)
    uses = []
    for mode in modes_of:
        step_s = mean_step(PAIR, TWO_LAYERS, two(mode), NO_CORRECTIONS)[0]
        judged = JudgedPlan(workload=TWO_LAYERS, plan=two(mode), step_s=step_s)
        uses.append(mean_use(PAIR, judged, NO_CORRECTIONS))

    assert uses[0].link_bytes == pytest.approx(uses[1].link_bytes)
    assert dict(uses[0].busy_s) == pytest.approx(dict(uses[1].busy_s))
    assert uses[0].memory == uses[1].memory


def test_where_steps_are_of_all_or_links_move_own_clocks_are_refused():
    decoupled = two(DecoupledDiLoCo())
    law = UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.5, update_interval_s=1.0)
    moving = dataclasses.replace(PAIR, movement=Movement(law=law, seed=0))

    with pytest.raises(ValueError, match="step times: topology must stand still"):
        mean_step(moving, TWO_LAYERS, decoupled, NO_CORRECTIONS)
    with pytest.raises(ValueError, match="step times of another simulator: quorum of the plan"):
        step_times_s(PAIR, TWO_LAYERS, [decoupled], simulator=lambda *_, **__: None)
    with pytest.raises(ValueError, match="training run: quorum of the plan must be all 2"):
        run_training(PAIR, TWO_LAYERS, decoupled, TrainingRun(num_iterations=2, epoch_s=FOREVER))
    with pytest.raises(ValueError, match="epoch: quorum of the plan must be all 2"):
        simulate_epoch(PAIR, TWO_LAYERS, decoupled)
