"""Cost of iterations: by hand, by the laws that any price list obeys, and without prices."""

import dataclasses
import math
import re

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import plan, plans, priced_topologies, unit_domain, unit_workload, workloads, world

from des import Link, Placement, Plan, Topology, read_topology, simulate
from des.views.prices import MissingPriceError, cost_of, has_prices

MB = 1e6


def priced_world(names: str, links: dict[str, float], gpu_prices: dict[str, float]) -> Topology:
    """Free and instant links and domains with given prices, in USD per GB and per GPU hour."""
    topology = world(names, dict.fromkeys(links, (1e30, 0.0)))
    return with_prices(topology, links, gpu_prices)


def with_prices(
    topology: Topology, links: dict[str, float], gpu_prices: dict[str, float]
) -> Topology:
    return dataclasses.replace(
        topology,
        domains=tuple(
            dataclasses.replace(domain, gpu_price_usd_per_hour=gpu_prices.get(domain.name))
            for domain in topology.domains
        ),
        links=tuple(
            dataclasses.replace(link, price_usd_per_gb=links.get(link.source + link.target))
            for link in topology.links
        ),
    )


def repriced(topology: Topology, link_usd: float, gpu_usd: float) -> Topology:
    """The world with the same price everywhere."""
    return dataclasses.replace(
        topology,
        domains=tuple(
            dataclasses.replace(domain, gpu_price_usd_per_hour=gpu_usd)
            for domain in topology.domains
        ),
        links=tuple(
            dataclasses.replace(link, price_usd_per_gb=link_usd) for link in topology.links
        ),
    )


def test_two_stages_by_hand():
    """3 microbatches of 500 MB each way: 1.5 GB at 0.02 and 1.5 GB at 0.09 make 0.165 USD.

    Equal stages of 600 + 1200 s on free links take (3 + 1) x 1800 = 7200 s: 2 hours of one GPU at
    4 and one at 1 USD make 10 USD.
    """
    topology = priced_world("AB", {"AB": 0.02, "BA": 0.09}, {"A": 4.0, "B": 1.0})
    workload = unit_workload([(600, 1200)] * 2, num_microbatches=3, message_bytes=500 * MB)

    cost = cost_of(simulate(topology, workload, plan(0, 1)), topology)
    assert cost.num_iterations == 1
    assert cost.num_bytes == 3e9
    assert cost.communication_usd == pytest.approx(0.165, rel=1e-12)
    assert cost.gpu_hours == pytest.approx(4.0, rel=1e-12)
    assert cost.compute_usd == pytest.approx(10.0, rel=1e-12)
    assert cost.total_usd == pytest.approx(10.165, rel=1e-12)


def test_every_hop_of_a_route_charges():
    """A->B->C and back: 1 GB at 0.01 + 0.02 and at 0.04 + 0.08; B only relays and costs no GPU."""
    topology = priced_world(
        "ABC", {"AB": 0.01, "BC": 0.02, "CB": 0.04, "BA": 0.08}, {"A": 1.0, "C": 1.0}
    )
    workload = unit_workload([(1800, 1800)] * 2, num_microbatches=1, message_bytes=1000 * MB)

    cost = cost_of(simulate(topology, workload, plan(0, 2)), topology)
    assert cost.num_bytes == 4e9
    assert cost.communication_usd == pytest.approx(0.15, rel=1e-12)
    assert cost.gpu_hours == pytest.approx(4.0, rel=1e-12)


def test_all_gpus_of_a_domain_in_use_are_paid_once():
    """8 GPUs for an hour, although two stages of the domain share them; B has one."""
    eight = dataclasses.replace(unit_domain("A", flops_per_s=1 / 8), num_gpus=8)
    topology = priced_world("AB", {"AB": 0.0, "BA": 0.0}, {"A": 2.0, "B": 3.0})
    topology = dataclasses.replace(
        topology,
        domains=(
            dataclasses.replace(eight, gpu_price_usd_per_hour=2.0),
            topology.domains[1],
        ),
    )
    workload = unit_workload([(600, 600)] * 3, num_microbatches=1)

    result = simulate(topology, workload, plan(0, 1, 0))
    assert result.makespan_s == 3600.0
    cost = cost_of(result, topology)
    assert cost.gpu_hours == pytest.approx(9.0, rel=1e-12)
    assert cost.compute_usd == pytest.approx(8 * 2.0 + 3.0, rel=1e-12)


def test_exchanged_gradients_are_paid_for():
    """Two ring steps each way of half of 2 bytes a parameter: 4e9 bytes for 2e9 parameters."""
    topology = priced_world("AB", {"AB": 0.02, "BA": 0.09}, {"A": 0.0, "B": 0.0})
    workload = unit_workload([(1, 2)], num_microbatches=2)
    large = dataclasses.replace(workload.layers[0], num_parameters=2e9)
    workload = dataclasses.replace(workload, layers=(large,))
    chosen = Plan(
        placement=Placement(domain_of_layer=(0,)), replicas=(Placement(domain_of_layer=(1,)),)
    )

    cost = cost_of(simulate(topology, workload, chosen), topology)
    assert cost.num_bytes == 8e9
    assert cost.communication_usd == pytest.approx(4 * 0.02 + 4 * 0.09, rel=1e-12)


@st.composite
def simulated(draw):
    """A priced world and the result of a plan on it."""
    topology = draw(priced_topologies())
    workload = draw(workloads())
    chosen = draw(plans(topology.num_domains, workload.num_layers))
    return topology, simulate(topology, workload, chosen)


@settings(max_examples=examples(50), deadline=None)
@given(case=simulated(), link_usd=st.floats(0, 1), gpu_usd=st.floats(0, 10))
def test_equal_prices_make_dollars_of_bytes_and_gpu_hours(case, link_usd, gpu_usd):
    topology, result = case
    used = {stage.domain for stage in result.stages}
    num_gpus = sum(domain.num_gpus for domain in topology.domains if domain.name in used)

    cost = cost_of(result, repriced(topology, link_usd, gpu_usd))
    gigabytes = result.communication_cost_bytes / 1e9
    assert cost.num_bytes == result.communication_cost_bytes
    assert cost.communication_usd == pytest.approx(link_usd * gigabytes, rel=1e-9)
    assert cost.gpu_hours == pytest.approx(num_gpus * result.makespan_s / 3600, rel=1e-9)
    assert cost.compute_usd == pytest.approx(gpu_usd * cost.gpu_hours, rel=1e-9)


@settings(max_examples=examples(50), deadline=None)
@given(case=simulated(), num_iterations=st.integers(1, 10**6))
def test_iterations_add_up_and_costs_stay_between_the_extreme_prices(case, num_iterations):
    topology, result = case
    once = cost_of(result, topology)
    often = cost_of(result, topology, num_iterations=num_iterations)

    for field in ("num_bytes", "communication_usd", "gpu_hours", "compute_usd", "total_usd"):
        total = getattr(often, field)
        assert total == pytest.approx(num_iterations * getattr(once, field), rel=1e-12)
    assert once.total_usd == once.communication_usd + once.compute_usd
    prices = [link.price_usd_per_gb for link in topology.links] or [0.0]
    gigabytes = once.num_bytes / 1e9
    assert once.communication_usd >= min(prices) * gigabytes * (1 - 1e-9)
    assert once.communication_usd <= max(prices) * gigabytes * (1 + 1e-9)


@settings(max_examples=examples(30), deadline=None)
@given(case=simulated(), seed=st.integers(0, 2**32))
def test_drawn_epochs_and_scaled_worlds_keep_their_prices(case, seed):
    topology, result = case
    drawn = topology.draw_epoch(np.random.default_rng(seed)).at_start()

    assert cost_of(result, drawn) == cost_of(result, topology)


def test_links_and_domains_that_are_not_used_need_no_price():
    topology = priced_world("ABC", {"AB": 0.1, "BA": 0.1}, {"A": 1.0, "B": 1.0})
    whole = Topology.of(
        topology.domains,
        [
            *topology.links,
            Link(source="A", target="C", bandwidth_bytes_per_s=1.0, latency_s=0.0),
        ],
    )
    workload = unit_workload([(1, 1)] * 2, num_microbatches=1, message_bytes=5e8)

    assert cost_of(simulate(whole, workload, plan(0, 1)), whole).communication_usd == pytest.approx(
        0.1
    )


def test_messages_of_no_bytes_need_no_price():
    unpriced = world("AB", {"AB": (1.0, 0.0), "BA": (1.0, 0.0)})
    topology = with_prices(unpriced, {}, {"A": 1.0, "B": 1.0})
    workload = unit_workload([(1, 1)] * 2, num_microbatches=1, message_bytes=0.0)

    assert cost_of(simulate(topology, workload, plan(0, 1)), topology).communication_usd == 0.0


@pytest.mark.parametrize(
    ("links", "gpu_prices", "message"),
    [
        ({"AB": 0.1}, {"A": 1.0, "B": 1.0}, "link B->A: price_usd_per_gb must be given"),
        ({"BA": 0.1}, {"A": 1.0, "B": 1.0}, "link A->B: price_usd_per_gb must be given"),
        ({"AB": 0, "BA": 0}, {"A": 1.0}, "domain B: gpu_price_usd_per_hour must be given"),
        ({"AB": 0, "BA": 0}, {"B": 1.0}, "domain A: gpu_price_usd_per_hour must be given"),
    ],
)
def test_a_missing_price_is_named(links, gpu_prices, message):
    topology = with_prices(world("AB", {"AB": (1e9, 0.0), "BA": (1e9, 0.0)}), links, gpu_prices)
    workload = unit_workload([(1, 1)] * 2, num_microbatches=1, message_bytes=1.0)
    result = simulate(topology, workload, plan(0, 1))

    with pytest.raises(MissingPriceError, match=f"{message} to reckon a cost, got None"):
        cost_of(result, topology)


def test_the_shipped_default_world_has_no_prices():
    topology = read_topology("east_central_west")
    workload = unit_workload([(1e15, 1e15)] * 2, num_microbatches=1, message_bytes=1.0)

    assert not has_prices(topology)
    with pytest.raises(MissingPriceError, match="link East->Central: price_usd_per_gb must be"):
        cost_of(simulate(topology, workload, plan(0, 1)), topology)


@pytest.mark.parametrize(
    ("links", "gpu_prices", "expected"),
    [({}, {}, False), ({"AB": 0.0}, {}, True), ({}, {"B": 0.0}, True)],
)
def test_a_price_of_zero_is_a_price(links, gpu_prices, expected):
    topology = with_prices(world("AB", {"AB": (1.0, 0.0)}), links, gpu_prices)

    assert has_prices(topology) is expected


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (world("AB", {}), "with its 2 links; got one with 0 links or other ends"),
        (world("AB", {"AB": (1.0, 0.0)}), "with its 2 links; got one with 1 links or other ends"),
        (world("AC", {"AC": (1.0, 0.0), "CA": (1.0, 0.0)}), "with its 2 links; got one with 2 li"),
    ],
)
def test_a_result_of_another_world_is_refused(other, message):
    topology = priced_world("AB", {"AB": 0.1, "BA": 0.1}, {"A": 1.0, "B": 1.0})
    workload = unit_workload([(1, 1)] * 2, num_microbatches=1, message_bytes=1.0)
    result = simulate(topology, workload, plan(0, 1))

    with pytest.raises(ValueError, match=f"cost: topology must be that of the result, {message}"):
        cost_of(result, other)


def test_a_result_of_other_domains_is_refused():
    workload = unit_workload([(1, 1)], num_microbatches=1)
    result = simulate(world("A", {}), workload, plan(0))

    with pytest.raises(ValueError, match=r"cost: topology must have the domains .*, A; got B"):
        cost_of(result, world("B", {}))


@pytest.mark.parametrize("num_iterations", [0, -1, 1.5, True])
def test_a_number_of_iterations_out_of_range_is_refused(num_iterations):
    topology = priced_world("A", {}, {"A": 1.0})
    result = simulate(topology, unit_workload([(1, 1)], num_microbatches=1), plan(0))

    with pytest.raises(ValueError, match="cost: num_iterations must be a whole number from 1"):
        cost_of(result, topology, num_iterations=num_iterations)


@pytest.mark.parametrize("price", [-0.01, math.nan, math.inf])
def test_impossible_prices_are_refused(price):
    message = f"must be finite and not negative, got {price!r}"
    with pytest.raises(ValueError, match=re.escape(f"domain A: gpu_price_usd_per_hour {message}")):
        dataclasses.replace(unit_domain("A"), gpu_price_usd_per_hour=price)
    with pytest.raises(ValueError, match=re.escape(f"link A->B: price_usd_per_gb {message}")):
        Link(
            source="A",
            target="B",
            bandwidth_bytes_per_s=1.0,
            latency_s=0.0,
            price_usd_per_gb=price,
        )
