"""The state of a real cluster on paper: who gets GPUs, when ranks leave, what nodes may say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_nodes import ScriptedNode, cluster_of, form, settle

from agents.cluster.table import ORDERINGS
from scenarios.cluster.job_state import JobState, LaunchedRank, LaunchState, live_job
from scenarios.cluster.launch_phases import lose_silent_nodes
from scenarios.cluster.live_cluster import LiveCluster
from scenarios.cluster.live_decisions import decide_jobs
from scenarios.cluster.node_reports import take_report
from scenarios.cluster.orders import node_orders

RULES = [name for name in ORDERINGS if name != "ppo"]  # which needs a trained network


def running(cluster: LiveCluster) -> dict[int, dict[str, list[int]]]:
    """GPUs of the jobs that run."""
    return {
        job.job_id: job.current.gpus_of()
        for job in cluster.live_jobs()
        if job.current is not None and job.current.phase == "running"
    }


def two_nodes(policy: str = "las") -> tuple[LiveCluster, list[ScriptedNode]]:
    """Cluster of two nodes of two GPUs, which have reported."""
    cluster = cluster_of(policy)
    nodes = [ScriptedNode(cluster, name, 2) for name in "ab"]
    for node in nodes:
        node.report(0.0)
    return cluster, nodes


def decided(cluster: LiveCluster, nodes: list[ScriptedNode], now_s: float) -> None:
    """Decide as at the end of a round, and let nodes do it."""
    decide_jobs(cluster, now_s, may_preempt=True)
    cluster.start_ready(now_s)
    settle(cluster, nodes, now_s)


def test_ranks_that_stand_at_different_iterations_leave_before_the_same_one():
    """Rank 3 has begun iteration 7, so all do, and leave before 8; the other job waits for that."""
    cluster, nodes = two_nodes()
    cluster.submit(form(4), 0.0)
    decided(cluster, nodes, 0.0)
    for rank, iteration in enumerate((5, 6, 6, 7)):
        nodes[rank // 2].begin((1, 1, rank), iteration)
    cluster.submit(form(1), 5.0)
    decided(cluster, nodes, 5.0)

    assert {order.leaves_at for order in node_orders(cluster, "a").ranks} == {8}
    assert running(cluster) == {}
    assert [nodes[0].begin((1, 1, 0), at) for at in (6, 7, 8)] == [True, True, False]
    settle(cluster, nodes, 6.0)
    assert running(cluster) == {2: {"a": [0]}}  # its GPU is free; the other ranks still leave
    for rank in (1, 2, 3):
        assert not nodes[rank // 2].begin((1, 1, rank), 8)
    settle(cluster, nodes, 7.0)
    assert cluster.jobs[1].state == "waiting"
    assert cluster.jobs[1].old is None
    nodes[0].exit((2, 1, 0))
    settle(cluster, nodes, 8.0)
    decided(cluster, nodes, 9.0)

    assert cluster.jobs[2].state == "done"
    assert running(cluster) == {1: {"a": [0, 1], "b": [0, 1]}}


@pytest.mark.parametrize(
    ("policy", "metrics", "runs"),
    [
        ("srtf", {"throughput": 0.1}, 2),  # by its expected time job 1 has 43,200 s left
        ("srtf_reported", {"throughput": 0.1}, 1),  # 500 s, job 2 has 1,000
        ("srtf_reported", {"throughput": 0.01}, 2),
        ("loss", {"loss": 4.0}, 2),  # the first was 8: its loss falls less than that of a new job
        ("loss", {"loss": 9.0}, 1),
        ("loss", {"loss": float("nan")}, 2),
    ],
)
def test_policies_read_the_metrics_that_ranks_report(policy, metrics, runs):
    cluster, nodes = two_nodes(policy)
    cluster.submit(form(4, iterations=100), 0.0)
    decided(cluster, nodes, 0.0)
    for found in ({"loss": 8.0}, metrics):
        nodes[0].begin((1, 1, 0), 50)
        nodes[0].ranks[1, 1, 0].metrics = found
        nodes[0].report(1.0)
    cluster.submit(form(4, service_s=1000.0), 2.0)
    decided(cluster, nodes, 3.0)

    assert [job.job_id for job in cluster.live_jobs() if job.current is not None] == [runs]


def test_a_node_that_is_lost_ends_its_job_everywhere_and_the_job_runs_again():
    cluster, nodes = two_nodes()
    cluster.submit(form(3), 0.0)
    decided(cluster, nodes, 0.0)
    nodes[0].report(90.0)
    assert not lose_silent_nodes(cluster, 99.0)
    assert lose_silent_nodes(cluster, 100.0)

    assert cluster.nodes["b"].presence == "lost"
    assert {order.is_killed for order in node_orders(cluster, "a").ranks} == {True}
    settle(cluster, nodes[:1], 101.0)
    nodes[1].restart()
    decided(cluster, nodes, 102.0)
    settle(cluster, nodes, 102.0)
    decided(cluster, nodes, 103.0)

    assert (cluster.jobs[1].failures, cluster.jobs[1].suspensions) == (1, 0)
    assert running(cluster) == {1: {"a": [0, 1], "b": [0]}}


def test_a_drained_node_keeps_its_job_and_a_leaving_one_waits_for_it():
    cluster, nodes = two_nodes()
    cluster.submit(form(2), 0.0)
    decided(cluster, nodes, 0.0)
    cluster.drain("a", takes_jobs=False)
    cluster.submit(form(2), 1.0)
    decided(cluster, nodes, 1.0)
    assert running(cluster) == {1: {"a": [0, 1]}, 2: {"b": [0, 1]}}

    nodes[0].is_leaving = True
    assert not nodes[0].report(2.0)
    settle(cluster, nodes, 2.0)
    for rank in (0, 1):
        nodes[0].begin((1, 1, rank), 0)
    assert nodes[0].report(3.0)
    assert cluster.nodes["a"].presence == "gone"
    assert cluster.jobs[1].suspensions == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_gpus": 8}, "num_gpus must stay 2, got 8"),
        ({"ranks": [{"job": 1, "launch": 1, "rank": 3}]}, "reports rank 3 of job 1, which it was"),
        ({"ranks": [{"job": 1, "launch": 1, "rank": -1}]}, "reports rank -1 of job 1, which it"),
    ],
)
def test_a_node_that_lies_is_refused_and_its_jobs_go_elsewhere(change, message):
    cluster, nodes = two_nodes()
    cluster.submit(form(2), 0.0)
    decided(cluster, nodes, 0.0)
    said = nodes[0].message().model_dump() | change
    with pytest.raises(ValueError, match=f"node a: {message}"):
        take_report(cluster, type(nodes[0].message()).model_validate(said), 1.0)
    decided(cluster, nodes[1:], 2.0)

    assert running(cluster) == {1: {"b": [0, 1]}}


def test_a_name_that_is_taken_is_refused_to_the_process_that_had_it_before():
    cluster, nodes = two_nodes()
    newer = ScriptedNode(cluster, "a", 2)
    newer.report(1.0)

    with pytest.raises(ValueError, match="node a: another process has joined under this name"):
        nodes[0].report(2.0)


def test_a_job_whose_command_is_not_found_fails_with_its_reason():
    cluster, nodes = two_nodes()
    cluster.submit(form(2), 0.0)
    decided(cluster, nodes, 0.0)
    rank = nodes[0].ranks[1, 1, 0]
    rank.has_ended, rank.reason = True, "cannot start 'train': No such file or directory"
    settle(cluster, nodes, 1.0)

    assert cluster.jobs[1].state == "failed"
    assert cluster.jobs[1].reason.startswith("rank 0 on a: cannot start 'train'")
    assert cluster.jobs[1].old is None
    with pytest.raises(ValueError, match="job 1: must be waiting or running, got failed"):
        cluster.cancel(1, 2.0)


def test_launches_that_start_together_have_ports_of_their_own():
    """Nodes that name no rack are racks of their own, so the widest job waits."""
    cluster, nodes = two_nodes()
    for _ in range(2):
        cluster.submit(form(1, level="rack", is_level_required=True), 0.0)
    cluster.submit(form(3, level="rack", is_level_required=True), 0.0)
    decided(cluster, nodes, 0.0)

    assert running(cluster) == {1: {"a": [0]}, 2: {"a": [1]}}
    ports = [order.master_port for order in node_orders(cluster, "a").ranks]
    assert sorted(ports) == [4000, 4001]


@pytest.mark.parametrize("policy", [*RULES, "fifo+load_1.2", "las+quota_2", "las+look_ahead"])
def test_every_policy_of_the_simulator_runs_jobs_to_their_end(policy):
    """Four jobs of 1 to 4 GPUs, two iterations each, an iteration a round."""
    cluster, nodes = two_nodes(policy)
    for width in (1, 4, 2, 3):
        cluster.submit(form(width, iterations=2, service_s=2.0), 0.0)
    for now_s in range(1, 30):
        for node in nodes:
            for key in sorted(node.ranks):
                iteration = cluster.jobs[key[0]].iteration + 1
                if node.begin(key, iteration) and iteration == 2:
                    node.exit(key)
        settle(cluster, nodes, now_s)
        decided(cluster, nodes, now_s)

    assert {job.state for job in cluster.jobs.values()} == {"done"}


def test_a_launch_counts_from_the_round_that_is_nearest_to_its_start():
    """Started at 10.4 of rounds of 10 s it has attained 9.6 s at 20, and may give way."""
    launch = LaunchState(number=1, ranks=[LaunchedRank(node="a", gpu=0)], started_s=10.4)
    job = JobState(job_id=1, form=form(), submitted_s=0.0, attained_s=5.0, current=launch)
    live = live_job(job, {"a": 0}, 20.0, 10.0)
    assert (live.launch_s, live.attained_by(20.0)) == (10.0, pytest.approx(14.6))
    launch.started_s = 15.4
    live = live_job(job, {"a": 0}, 20.0, 10.0)

    assert (live.launch_s, live.attained_by(20.0)) == (20.0, pytest.approx(9.6))


def check(cluster: LiveCluster, stored: dict[str, str], nodes: list[ScriptedNode]) -> None:
    """GPUs have one rank, ranks leave at one iteration, the stored state gives equal orders."""
    stored |= cluster.take_changes()[0]
    again = cluster_of()
    again.restore(stored)
    left: dict[tuple[int, int], set[int]] = {}
    for node in nodes:
        orders = node_orders(cluster, node.name)
        gpus = [order.gpu for order in orders.ranks]
        assert len(set(gpus)) == len(gpus)
        assert node_orders(again, node.name) == orders
        for (job, launch, _), iteration in node.left_at.items():
            left.setdefault((job, launch), set()).add(iteration)
    assert all(len(iterations) == 1 for iterations in left.values())


@given(st.data())
def test_whatever_happens_gpus_have_one_rank_and_all_jobs_end(data):
    """Decisions, borders, reports and kills in any order; then everything is let to its end."""
    cluster, nodes = two_nodes()
    stored: dict[str, str] = {}
    for now_s in range(1, 25):
        node = data.draw(st.sampled_from(nodes))
        what = data.draw(st.sampled_from(("submit", "decide", "obey", "begin", "report", "kill")))
        if what == "submit" and len(cluster.jobs) < 4:
            cluster.submit(form(data.draw(st.integers(1, 4))), now_s)
        elif what == "decide":
            decide_jobs(cluster, now_s, may_preempt=True)
            cluster.start_ready(now_s)
        elif what == "obey":
            node.obey()
        elif what == "begin" and node.ranks:
            key = data.draw(st.sampled_from(sorted(node.ranks)))
            node.begin(key, node.ranks[key].begun + 1)
        elif what == "kill":
            node.restart()
        else:
            node.report(now_s)
        check(cluster, stored, nodes)
    for now_s in range(25, 60):
        decided(cluster, nodes, now_s)
        for node in nodes:
            for key in sorted(node.ranks):
                if node.begin(key, node.ranks[key].begun + 1):
                    node.exit(key)
        check(cluster, stored, nodes)

    assert {job.state for job in cluster.jobs.values()} <= {"done"}
    assert all(not node_orders(cluster, node.name).ranks for node in nodes)
