"""Shares of links for jobs that run side by side."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.cluster.pricing.iteration_prices import IterationPrices, PlacedJob
from agents.cluster.pricing.link_shares import fair_share, price_together
from des.compiled.simulate import simulate_compiled
from des.job.models import build_workload
from des.plan.placement import Placement
from des.plan.plan import Plan
from des.world.transport import Transport
from des.worlds.generator import PlaneWorlds
from scenarios.job_queue.share_errors import share_errors


@pytest.fixture(scope="module")
def slow_links():
    """A job over two domains whose link is its bottleneck."""
    topology = PlaneWorlds(num_domains=2, mean_bandwidth_bytes_per_s=1e9 / 8).draw(
        np.random.default_rng(0)
    )
    topology = replace(topology, transport=Transport(sharing="fair"))
    workload = build_workload("llama3_2_1b", num_microbatches=16, microbatch_size=4)
    plan = Plan(placement=Placement.even(2, workload.num_layers))
    alone_s = simulate_compiled(topology, workload, plan).makespan_s
    return PlacedJob(topology=topology, workload=workload, plan=plan, reference_s=alone_s)


@given(others=st.integers(0, 6))
def test_jobs_that_always_send_have_max_min_shares(others):
    """Equal parts among all, the others' messages counted."""
    assert fair_share(1.0, [(0.5, 0.0, 1.0)] * others) == pytest.approx(1 / (1 + others))
    assert fair_share(1.0, [(0.5, 0.0, 4.0)] * others) == pytest.approx(1 / (1 + 4 * others))


@given(
    others=st.lists(
        st.tuples(st.floats(0.01, 1), st.floats(0, 1), st.floats(1, 9)), min_size=1, max_size=4
    )
)
def test_a_share_falls_with_every_other_job(others):
    assert 0 < fair_share(1.0, others) < fair_share(1.0, others[1:]) + 1e-12 <= 1 + 2e-12


def test_a_job_alone_has_its_links_to_itself(slow_links):
    (price,) = price_together([slow_links], IterationPrices(), "fair")

    assert price.time_s == slow_links.reference_s
    assert sum(use.num_bytes for use in price.links.values()) == pytest.approx(
        2 * 16 * slow_links.workload.message_bytes
    )


def test_equal_jobs_slow_each_other_equally_and_a_higher_one_is_not_slowed(slow_links):
    prices = IterationPrices()
    one, other = price_together([slow_links] * 2, prices, "fair")
    first = replace(slow_links, priority=1)
    high, low = price_together([first, slow_links], prices, "priority")

    assert one.time_s == other.time_s > 1.2 * slow_links.reference_s
    assert high.time_s == slow_links.reference_s
    assert low.time_s > one.time_s


def test_nothing_is_shared_where_the_transport_says_so(slow_links):
    apart = replace(slow_links.topology, transport=Transport(sharing="none"))
    job = replace(slow_links, topology=apart)
    prices = IterationPrices()

    assert price_together([job] * 3, prices, "fair") == (prices.price(job, {}),) * 3


def test_prices_of_a_file_are_those_that_were_computed(slow_links, tmp_path):
    shares = {(link.source, link.target): 0.5 for link in slow_links.topology.links}
    prices = [IterationPrices.open(path) for path in (None, *[tmp_path / "prices"] * 2)]

    first, stored, again = (each.price(slow_links, shares) for each in prices)
    assert first == stored == again


def test_job_times_by_shares_are_close_to_those_of_messages():
    """All mixes are in the documentation; five have a mean error below 5 %."""
    errors, slower = share_errors(5, 4, seed=0)

    assert abs(errors).mean() < 0.05
    assert slower.mean() > 1.15
