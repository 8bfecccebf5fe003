"""Values of the cluster: what they refuse, and units of nodes."""

import pytest
from queues import policy, queued, ran

from des.cluster.node_set import ClusterPlace, NodeChange, NodeSet
from des.cluster.queued_job import QueuedJob, SpeedCurve
from des.cluster.running import run
from des.cluster.world import BloxRules, World
from des.dynamics import LinkState, MarkovModulated

NODES = NodeSet.equal(1, 4)


@pytest.mark.parametrize(
    ("field", "value"),
    [("arrival_s", -1.0), ("service_s", 0.0), ("num_gpus", 0), ("iteration_s", float("nan"))],
)
def test_a_job_names_what_is_wrong_with_it(field, value):
    right = {"job_id": 7, "arrival_s": 0.0, "num_gpus": 1, "service_s": 1.0}
    with pytest.raises(ValueError, match=rf"job 7: {field} must be .*got"):
        QueuedJob(**(right | {field: value}))


def test_jobs_out_of_order_are_refused():
    jobs = tuple(reversed(queued((0, 1, 1), (5, 1, 1))))
    with pytest.raises(ValueError, match=r"job 0: arrival_s must be at least .* 5, got 0"):
        ran(jobs)


@pytest.mark.parametrize("times", [{}, {"round_s": 1.0, "blox": BloxRules()}])
def test_two_jobs_of_one_number_are_refused(times):
    (job,) = queued((0, 1, 5))
    with pytest.raises(ValueError, match="job 0: job_id must be that of one job, got two"):
        ran((job, job), **times)


def test_jobs_wider_than_the_cluster_are_refused_or_counted():
    jobs = queued((0, 5, 1), (0, 4, 1))
    with pytest.raises(ValueError, match=r"job 0: num_gpus must be at most .* 4, got 5"):
        ran(jobs)
    assert ran(jobs, too_wide="count").refused == (0,)


def test_tracked_jobs_must_arrive():
    with pytest.raises(ValueError, match="tracked_ids must be of jobs that arrive, got 0 to 3"):
        ran(queued((0, 1, 1)), tracked_ids=(0, 3))
    with pytest.raises(ValueError, match="tracked_ids must be a first and a last number"):
        ran(queued((0, 1, 1)), tracked_ids=(3, 0))


def test_wrong_nodes_and_changes_are_refused():
    with pytest.raises(ValueError, match="kind must be one of join, drain, fail, leave"):
        NodeChange(time_s=0, node=0, kind="stop")
    with pytest.raises(ValueError, match="node must be a position from 0 to 0, got 3"):
        ran((), changes=(NodeChange(time_s=0, node=3, kind="fail"),))
    with pytest.raises(ValueError, match="got 'a' twice"):
        NodeSet(nodes=(ClusterPlace(name="a", num_gpus=1),) * 2)
    with pytest.raises(ValueError, match="level must be one of node, domain; got 'rack'"):
        NODES.level_units("rack")


def test_rules_of_blox_have_rounds_and_no_failures():
    with pytest.raises(ValueError, match="round_s must be positive"):
        World(nodes=NODES, jobs=(), blox=BloxRules())
    law = MarkovModulated(
        states=(LinkState(name="up", bandwidth_factor=1, mean_dwell_s=float("inf")),),
        starts_in="up",
    )
    with pytest.raises(ValueError, match="changes and failures must be none"):
        World(nodes=NODES, jobs=(), blox=BloxRules(), round_s=1.0, failures=law)


def test_units_of_a_level_are_those_of_its_nodes():
    nodes = NodeSet.equal(4, 2, nodes_per_rack=2)

    assert nodes.level_units("rack") == {"r0": [0, 1], "r1": [2, 3]}
    assert nodes.num_gpus == 8


def test_an_elastic_job_needs_a_range_of_gpus():
    with pytest.raises(ValueError, match="most_gpus must be at least least_gpus, 4, got 2"):
        SpeedCurve(least_gpus=4, most_gpus=2)


def test_a_watch_sees_every_decision():
    decisions = []
    world = World(nodes=NODES, jobs=queued((0, 2, 10), (0, 4, 10)))
    run(world, policy(), watch=lambda view, decision: decisions.append((view.now_s, decision)))

    assert [
        (now_s, [(job.job.job_id, gpus) for job, gpus in decision.launched])
        for now_s, decision in decisions
    ] == [(0, [(0, ((0, 0b11),))]), (10, [(1, ((0, 0b1111),))])]
