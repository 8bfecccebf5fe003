"""Links of a world that become one link, by each of the rules."""

from dataclasses import replace

import pytest
from converted_cases import GIB, UNEQUAL, case_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import topologies, world

from calibration.cases.aggregation import aggregated, aggregated_inside
from calibration.reference.astra_config import as_seen
from des import Movement
from des.dynamics import UniformLaw

AGGREGATIONS = ("min", "mean", "max", "harmonic")


@pytest.mark.parametrize(
    ("aggregation", "gib_per_s", "latency_s"),
    [
        ("min", 1.0, 0.060),
        ("max", 4.0, 0.010),
        ("mean", 19 / 6, 0.030),
        ("harmonic", 6 / (1 / 1 + 1 / 2 + 4 / 4), 0.030),
    ],
)
def test_links_become_one_link_by_the_documented_rule(aggregation, gib_per_s, latency_s):
    links = aggregated(UNEQUAL, aggregation).links

    assert len(links) == 6
    for link in links:
        assert link.bandwidth_bytes_per_s == pytest.approx(gib_per_s * GIB, rel=1e-15)
        assert link.latency_s == pytest.approx(latency_s, rel=1e-15)


@given(topologies(min_domains=2), st.sampled_from(AGGREGATIONS))
def test_an_aggregated_world_is_aggregated_already_and_keeps_its_routes(topology, aggregation):
    once = aggregated(topology, aggregation)

    assert aggregated(once, aggregation) is once
    assert len({(link.bandwidth_bytes_per_s, link.latency_s) for link in once.links}) == 1
    for source in range(topology.num_domains):
        for target in range(topology.num_domains):
            if source != target:
                assert once.route(source, target) == topology.route(source, target)


@given(topologies(min_domains=2))
def test_reductions_are_ordered_from_the_worst_to_the_best(topology):
    """Slower and farther before faster and nearer; a harmonic mean is at most the arithmetic."""
    found = [aggregated(topology, each).links[0] for each in ("min", "harmonic", "mean", "max")]

    bandwidths = [link.bandwidth_bytes_per_s * (1 + 1e-12 * n) for n, link in enumerate(found)]
    latencies_s = [link.latency_s * (1 - 1e-12 * n) for n, link in enumerate(found)]
    assert bandwidths == sorted(bandwidths)
    assert latencies_s == sorted(latencies_s, reverse=True)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_equal_links_stay_as_they_are_to_the_last_bit(aggregation):
    equal = world("AB", {"AB": (0.1, 0.1), "BA": (0.1, 0.1)})

    assert aggregated(equal, aggregation) is equal
    assert aggregated_inside(equal, aggregation) == equal


def test_what_cannot_be_aggregated_is_refused_by_name():
    with pytest.raises(ValueError, match="network_aggregation: must be one of min, mean, max, ha"):
        aggregated(UNEQUAL, "median")
    law = UniformLaw(bandwidth_fluctuation=0.5, latency_jitter=0.0, update_interval_s=1.0)
    moving = replace(UNEQUAL, movement=Movement(law=law, seed=0))
    with pytest.raises(ValueError, match="topology: movement must be None"):
        aggregated(moving, "min")
    with pytest.raises(ValueError, match="backend: must be one of unaware, aware, pairwise"):
        as_seen(case_of(UNEQUAL, 0, 1, 2), "ns2")
