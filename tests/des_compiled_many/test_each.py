"""Plans simulated each on a network of its own: the bits of one by one, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from des import (
    NO_CORRECTIONS,
    DiLoCo,
    Domain,
    Placement,
    Plan,
    Topology,
    build_workload,
    read_topology,
    simulate,
)
from des.compiled.many.each import network_figures, simulate_each
from des.compiled.many.job import domain_figures
from des.compiled.many.simulation import simulate_many

WORLD = read_topology("four_uneven")
JOB = build_workload("llama2_7b", num_layers=8, num_microbatches=6)
COMMON = domain_figures(JOB, WORLD.domains, NO_CORRECTIONS)
ALONE, PAIR, CHAIN = (
    Plan(placement=Placement.parse(text)) for text in ("2*8", "0*3,1*5", "3*2,2*2,1*2,0*2")
)
COPIES = Plan(
    placement=Placement.parse("2*8"),
    replicas=(Placement.parse("0*8"), Placement.parse("3*5,1*3")),
    shares=(3, 2, 1),
    schedule="gpipe",
)
RARE = replace(COPIES, shares=(), synchronisation=DiLoCo(steps_between=3))
PLANS = (ALONE, PAIR, CHAIN, COPIES, RARE)


def slowed(link_factors, speed_factors) -> Topology:
    """The world with other bandwidths and speeds."""
    domains = tuple(
        replace(one, attainable_fraction=one.attainable_fraction * factor)
        for one, factor in zip(WORLD.domains, speed_factors, strict=True)
    )
    moved = WORLD.scaled(np.array(link_factors), np.ones(len(WORLD.links)))
    return replace(moved, domains=domains)


factors = st.floats(0.1, 1.0)
networks = st.builds(
    slowed,
    st.lists(factors, min_size=12, max_size=12),
    st.lists(factors, min_size=4, max_size=4),
)
cases = st.lists(
    st.tuples(networks, st.sampled_from(PLANS), st.integers(0, 5)), min_size=1, max_size=6
)


@given(cases=cases)
def test_times_are_those_of_plans_one_by_one(cases):
    figures = network_figures([world for world, _, _ in cases], JOB, COMMON)
    steps = [step for _, _, step in cases]
    found = simulate_each(figures, COMMON, JOB, [plan for _, plan, _ in cases], steps=steps)

    assert found.tolist() == [
        simulate_many([world], JOB, [plan], steps=[step])[0, 0] for world, plan, step in cases
    ]


def test_more_networks_than_are_taken_as_one():
    worlds = [slowed([1.0 - each / 200] * 12, [1.0] * 4) for each in range(70)]
    figures = network_figures(worlds, JOB, COMMON)
    found = simulate_each(figures, COMMON, JOB, [PAIR] * 70)

    assert found[0] == simulate(worlds[0], JOB, PAIR).makespan_s
    assert found[69] == simulate(worlds[69], JOB, PAIR).makespan_s
    assert (np.diff(found) > 0).all()


def larger(domain: Domain) -> Domain:
    return replace(domain, gpu_memory_bytes=2 * domain.gpu_memory_bytes)


@pytest.mark.parametrize(
    ("world", "message"),
    [
        (Topology.of(WORLD.domains, WORLD.links[1:]), "a link between every two domains"),
        (
            replace(WORLD, domains=tuple(map(larger, WORLD.domains))),
            "domains of topologies must differ in speed alone",
        ),
    ],
)
def test_networks_that_differ_in_more_are_refused(world, message):
    with pytest.raises(ValueError, match=message):
        network_figures([WORLD, world], JOB, COMMON)


def test_plans_that_come_back_to_a_domain_are_refused():
    figures = network_figures([WORLD] * 2, JOB, COMMON)
    there_and_back = Plan(placement=Placement.parse("0*2,1*2,0*2,1*2"))
    with pytest.raises(ValueError, match="plans must have one stage per domain"):
        simulate_each(figures, COMMON, JOB, [PAIR, there_and_back])
