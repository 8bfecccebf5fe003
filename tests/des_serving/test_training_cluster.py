"""Instances on nodes where jobs train: a GPU has one owner, and jobs give way."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from queues import FREE, policy, queued

from agents.cluster.key_orderings import Fifo, HighestPriority, LeastAttained, ShortestRemaining
from agents.cluster.preempting import MakeRoom, OneUnit, WorstFirst
from des.clock import Clock
from des.cluster.claims import ClaimedCluster
from des.cluster.node_set import NodeChange, NodeSet
from des.cluster.world import World
from des.serving.applications import Application
from des.serving.training_cluster import TrainingSide, run_with_training
from tests.fleet_cases import Drawn, Planned, drawn_stream, engine, fleet_world

PRIORITY = policy(HighestPriority(quantum_s=0.0), preempting=WorstFirst())
POLICIES = {
    "priority": PRIORITY,
    "one_unit": policy(HighestPriority(quantum_s=0.0), preempting=OneUnit()),
    "las": policy(LeastAttained(quantum_s=3.0), preempting=WorstFirst()),
    "srtf": policy(ShortestRemaining(quantum_s=0.0), preempting=WorstFirst()),
    "moves": policy(Fifo(), preempting=MakeRoom()),
    "fifo": policy(),
}


def training(jobs, parts=PRIORITY, *, nodes=2, gpus=4):
    """Jobs on equal nodes whose stays are kept."""
    world = World(nodes=NodeSet.equal(nodes, gpus), jobs=jobs, replacement=FREE, keeps_stays=True)
    return TrainingSide(world=world, policy=parts)


def application(counts, *, num=40, seed=1, priority=1, gpus=4):
    """A mixed pool of one instance that follows a list of counts, a second each."""
    world = fleet_world(
        drawn_stream(seed, num), {"mixed": 1}, engine=engine(num_gpus=gpus), decision_interval_s=1.0
    )
    rule = Planned(tuple({"mixed": num} for num in counts))
    return Application(world=world, policy=rule, priority=priority)


def test_a_job_gives_way_to_an_instance_and_runs_again():
    """Node 1 trains from 0 s; the instance has it from 2 s to 5 s, so the job ends 3 s later."""
    shared = run_with_training(
        {"chat": application((1, 2, 2, 2, 1))}, training(queued((0, 4, 60))), seed=0
    )
    (job,) = shared.training.jobs
    second = shared.applications["chat"].instances[1]
    stays = [(stay.node, stay.start_s, stay.end_s) for stay in shared.training.stays]

    assert second.ordered_s == 2.0
    assert (job.suspensions, shared.num_refused) == (1, 0)
    assert stays == [(1, 0.0, 2.0), (1, second.stopped_s, job.finish_s)]
    assert job.finish_s == 60 + (second.stopped_s - 2.0)


def test_an_instance_is_refused_where_no_job_gives_way():
    """The job has the priority of the instance, which is no reason to give way."""
    one = application((1, 2, 2), priority=0)
    shared = run_with_training({"chat": one}, training(queued((0, 4, 60))))
    history = shared.applications["chat"]

    assert len(history.instances) == 1
    assert all(row.end_s is not None for row in history.requests)
    assert shared.training.jobs[0].finish_s == 60
    assert "denies 1" in history.decisions[1][1].why


def test_a_start_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"scale up chat: .* 8 free GPUs on a node"):
        run_with_training({"chat": application((1,), gpus=8)}, training(queued((0, 4, 60))))


def test_claims_need_nodes_that_stay():
    world = World(
        nodes=NodeSet.equal(1, 4),
        jobs=queued((0, 1, 1)),
        changes=(NodeChange(time_s=1.0, node=0, kind="drain"),),
    )
    with pytest.raises(ValueError, match="changes and failures must be none"):
        ClaimedCluster(world, PRIORITY, clock=Clock())


def end_of(instance, history):
    """Time at which an instance gives its GPUs back; the last ones do with the last request."""
    return history.end_s if instance.stopped_s is None else instance.stopped_s


def gpu_time_s(spans):
    """Sum of GPUs times seconds."""
    return sum(gpus * (end_s - start_s) for _, start_s, end_s, gpus in spans)


def most_held(spans):
    """Most GPUs held at one time; ends count before begins at the same time."""
    held, most = 0, 0
    changes = [
        (at_s, sign * gpus)
        for _, start_s, end_s, gpus in spans
        if start_s < end_s
        for at_s, sign in ((start_s, 1), (end_s, -1))
    ]
    for _, change in sorted(changes):
        held += change
        most = max(most, held)
    return most


@settings(deadline=None, max_examples=25)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 12), st.integers(1, 8), st.integers(1, 15)), min_size=1, max_size=8
    ),
    name=st.sampled_from(sorted(POLICIES)),
    seed=st.integers(0, 2**16),
    small=st.sampled_from([1, 2, 4]),
)
def test_no_gpu_is_given_out_twice_and_gpu_time_is_conserved(rows, name, seed, small):
    """On no node do stays of jobs and instances ever need more GPUs than it has."""
    fleets = {
        "a": Application(world=application((1,), seed=seed).world, policy=Drawn(seed), priority=2),
        "b": Application(
            world=application((1,), seed=seed + 1, gpus=small).world, policy=Drawn(seed + 1)
        ),
    }
    side = training(queued(*sorted(rows)), POLICIES[name], nodes=3)
    shared = run_with_training(fleets, side, seed=seed)
    seconds = shared.training.gpu_seconds
    jobs = [(one.node, one.start_s, one.end_s, one.num_gpus) for one in shared.training.stays]
    lives = [
        (one.server, one.ordered_s, end_of(one, history), history.world.engine.num_gpus)
        for history in shared.applications.values()
        for one in history.instances
    ]
    for node in range(3):
        assert most_held([one for one in (*jobs, *lives) if one[0] == node]) <= 4

    assert seconds.held == pytest.approx(gpu_time_s(jobs))
    assert seconds.lent == pytest.approx(gpu_time_s(lives))
    assert seconds.present == pytest.approx(seconds.held + seconds.lent + seconds.free)
    assert len(shared.training.jobs) == len(rows)
    assert seconds.useful == pytest.approx(sum(gpus * long for _, gpus, long in rows))
