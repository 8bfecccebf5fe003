"""Many plans on many networks at once: the same times as `des.simulate`, to the last bit."""

from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sending import transports
from strategies import free_world, plan, topologies, unit_workload, workloads, world

from des import Corrections, Parallelism, UnreachableError, simulate
from des.compiled.many.job import has_every_link
from des.compiled.many.simulation import simulate_many
from des.costs.message_times import direct_links, hop_goodput_bytes_per_s

FACTORS = Corrections(
    wan_bandwidth_factor=0.7,
    wan_latency_factor=1.3,
    message_overhead_s=0.01,
    compute_time_factor=1.1,
)
DEPTHS = ["1f1b", "1f1b_2x", "gpipe", "zb_h1"]


@settings(max_examples=examples(25), deadline=None)
@given(data=st.data(), workload=workloads(num_layers=5, max_microbatches=5))
def test_times_are_those_of_the_readable_engine(data, workload):
    """Chains, relays, several stages a domain, schedules of halves and any transport."""
    size = data.draw(st.integers(2, 4))
    drawn = topologies(min_domains=size, max_domains=size)
    networks = [
        replace(data.draw(drawn), transport=data.draw(transports()), movement=None)
        for _ in range(3)
    ]
    domains = st.lists(st.integers(0, size - 1), min_size=5, max_size=5)
    plans = [
        plan(*data.draw(domains), schedule=data.draw(st.sampled_from(DEPTHS))) for _ in range(4)
    ]
    corrections = data.draw(st.sampled_from([Corrections(), FACTORS]))

    try:
        expected = [
            [simulate(network, workload, one, corrections).makespan_s for one in plans]
            for network in networks
        ]
    except UnreachableError:
        with pytest.raises(UnreachableError):
            simulate_many(networks, workload, plans, corrections)
        return

    assert simulate_many(networks, workload, plans, corrections).tolist() == expected


def test_plans_that_no_row_can_hold_are_simulated_one_by_one():
    """Tensor parallelism inside a domain, and a schedule that looks at times."""
    job = unit_workload([(1, 2)] * 4, num_microbatches=3, message_bytes=1.0)
    two = free_world(2)
    plans = [
        replace(plan(0, 0, 1, 1), parallelism=(Parallelism(pipeline=2),) * 2),
        plan(0, 0, 1, 1, schedule="greedy"),
        plan(0, 0, 1, 1),
    ]
    pair = replace(two, domains=tuple(replace(domain, num_gpus=2) for domain in two.domains))

    found = simulate_many([pair, pair], job, plans)

    assert found.shape == (2, 3)
    assert found[0].tolist() == found[1].tolist()
    assert found[0].tolist() == [simulate(pair, job, one).makespan_s for one in plans]


def test_several_stages_a_domain_alone_are_simulated_one_by_one():
    job = unit_workload([(1, 2)] * 4, num_microbatches=3, message_bytes=1.0)
    interleaved = plan(0, 1, 0, 1)

    found = simulate_many([free_world(2)], job, [interleaved])

    assert found.tolist() == [[simulate(free_world(2), job, interleaved).makespan_s]]


def test_pipelines_that_come_back_stand_next_to_others():
    """Found by a command of the documents, `eastwest robustness`."""
    job = unit_workload([(1, 2)] * 4, num_microbatches=3, message_bytes=1.0)
    plans = [plan(0, 1, 0, 1), plan(0, 0, 1, 1), plan(0, 1, 0, 1, schedule="1f1b_2x")]

    found = simulate_many([free_world(2)], job, plans)

    assert found.tolist() == [[simulate(free_world(2), job, one).makespan_s for one in plans]]


def test_nothing_to_simulate_is_an_empty_table():
    job = unit_workload([(1, 1)] * 2, num_microbatches=1)

    assert simulate_many([], job, [plan(0, 1)]).shape == (0, 1)
    assert simulate_many([free_world(2)], job, []).shape == (1, 0)
    with pytest.raises(ValueError, match=r"same number of domains, got \[2, 3\]"):
        simulate_many([free_world(2), free_world(3)], job, [plan(0, 1)])


@given(topology=topologies(min_domains=2, max_domains=5), transport=transports())
def test_goodputs_of_all_links_are_those_of_one_by_one(topology, transport):
    standing = replace(topology, transport=transport, movement=None)

    for corrections in (Corrections(), FACTORS):
        goodput, latency_s = direct_links(standing, corrections)
        for ends, index in standing.link_index.items():
            assert goodput[ends] == hop_goodput_bytes_per_s(standing, index, corrections)
            factor = corrections.wan_latency_factor
            assert latency_s[ends] == standing.links[index].latency_s * factor
        assert np.count_nonzero(goodput) == len(standing.links)


def test_a_missing_way_back_counts_the_way_there_twice():
    """4 bytes under way for 1 s + 1 s are 2 bytes/s; the wire itself has 8."""
    one_way = world("AB", {"AB": (8.0, 1.0)})
    windowed = replace(one_way, transport=replace(one_way.transport, window_bytes=4.0))

    assert not has_every_link(windowed)
    assert direct_links(windowed)[0].tolist() == [[0.0, 2.0], [0.0, 0.0]]
