"""Queues on a network: rates by the training simulator, shared links, bytes and restarts."""

from dataclasses import replace

import numpy as np
import pytest
from queues import FREE, policy, queued

from agents.cluster.placing import FirstFree, Scattered
from agents.cluster.pricing.iteration_prices import IterationPrices
from agents.cluster.pricing.link_pricing import LinkPricing
from agents.cluster.pricing.network_jobs import NetworkJobs, nodes_of_network, workload_of_job
from agents.planners.rules.static import proportional
from des.cluster.node_set import NodeChange
from des.cluster.plain_pricing import PlainPricing
from des.cluster.running import run
from des.cluster.world import World
from des.compiled.simulate import simulate_compiled
from des.plan.placement import Placement
from des.plan.plan import Plan
from des.plan.replacement import Replacement
from des.world.transport import Transport
from des.worlds.generator import PlaneWorlds

MODEL = "llama3_2_1b"
SCATTERED = Scattered(level="", is_required=False)


@pytest.fixture(scope="module")
def network():
    """Two domains of one node of 8 GPUs, joined by a slow link that is shared fairly."""
    topology = PlaneWorlds(num_domains=2, mean_bandwidth_bytes_per_s=1e9 / 8).draw(
        np.random.default_rng(0)
    )
    return replace(topology, transport=Transport(sharing="fair"))


def ran_on(network, jobs, placing=SCATTERED, *, replacement=FREE, **world):
    """History of jobs on a network, each over as many domains as it can be by default."""
    placer = NetworkJobs(topology=network, planner=proportional, replacement=replacement)
    pricing = LinkPricing(
        placer=placer, prices=IterationPrices(), plain=PlainPricing(replacement=replacement)
    )
    nodes = nodes_of_network(network, 8)
    world = World(nodes=nodes, jobs=jobs, **world)
    return run(world, policy(placing=placing), pricing=pricing)


def iteration_s(network, num_domains):
    """Time of an iteration on 8 GPUs, halves of which are in each of two domains. [s]"""
    domains = [replace(each, num_gpus=8 // num_domains) for each in network.domains[:num_domains]]
    links = network.links if num_domains == 2 else ()
    topology = replace(network, domains=tuple(domains), links=links)
    workload = workload_of_job(MODEL, 8)
    plan = Plan(placement=Placement.even(num_domains, workload.num_layers))
    return simulate_compiled(topology, workload, plan).makespan_s


def test_a_job_is_slower_by_what_an_iteration_over_its_domains_takes(network):
    """Its GPUs are 4 in each of both domains; in one domain it has a rate of 1."""
    across = ran_on(network, queued((0.0, 8, 100.0), model=MODEL))
    inside = ran_on(network, queued((0.0, 8, 100.0), model=MODEL, domain="domain0"))

    assert inside.mean_jct_s == pytest.approx(100.0)
    expected_s = 100.0 * iteration_s(network, 2) / iteration_s(network, 1)
    assert across.mean_jct_s == pytest.approx(expected_s)
    assert inside.link_bytes == ()


def test_bytes_are_those_of_the_iterations_done(network):
    """Two activations' worth per microbatch and iteration, one each way, shared links or not."""
    workload = workload_of_job(MODEL, 8)
    each_way = 100.0 / iteration_s(network, 1) * 8 * workload.message_bytes

    for num_jobs in (1, 2):
        history = ran_on(network, queued(*[(0.0, 8, 100.0)] * num_jobs, model=MODEL))
        assert dict(history.link_bytes) == pytest.approx(
            dict.fromkeys([("domain0", "domain1"), ("domain1", "domain0")], num_jobs * each_way)
        )


def test_jobs_on_one_link_slow_each_other_until_one_ends(network):
    alone = ran_on(network, queued((0.0, 8, 100.0), model=MODEL)).mean_jct_s
    both = ran_on(network, queued((0.0, 8, 100.0), (0.0, 8, 50.0), model=MODEL))
    times_s = {job.job_id: job.jct_s for job in both.jobs}

    assert 0.5 * alone < times_s[1] < alone  # slower than its own time alone
    slower = times_s[1] / (0.5 * alone)
    assert times_s[0] == pytest.approx(times_s[1] + (1 - 0.5) * alone)
    assert 1.1 < slower < 2.0
    seconds = both.gpu_seconds
    assert seconds.restart == seconds.lost == 0
    assert seconds.held == pytest.approx(8 * sum(times_s.values()))


def test_model_state_follows_a_job_to_another_domain(network):
    """Its node leaves, so 40e9 bytes cross the link once, in addition to the restart."""
    jobs = queued((0.0, 8, 100.0), model=MODEL, state_bytes=40e9)
    leaves = NodeChange(time_s=1.0, node=0, kind="leave")
    replacement = Replacement(restart_s=5.0)
    history = ran_on(network, jobs, FirstFree(), replacement=replacement, changes=(leaves,))

    (link,) = (link for link in network.links if link.target == "domain1")
    pause_s = 5.0 + link.latency_s + 40e9 / link.bandwidth_bytes_per_s
    assert history.mean_jct_s == pytest.approx(100.0 + pause_s)
    assert history.gpu_seconds.restart == pytest.approx(8 * pause_s)
    assert history.link_bytes == ((("domain0", "domain1"), 40e9),)


def test_a_network_that_does_not_divide_into_nodes_is_refused(network):
    with pytest.raises(ValueError, match="num_gpus must be a multiple of the 3 GPUs of a node"):
        nodes_of_network(network, 3)
    with pytest.raises(ValueError, match="got none from domain0 to domain1"):
        nodes_of_network(replace(network, links=network.links[1:]), 8)
