"""The range of worlds that a policy has learnt on."""

from dataclasses import replace

import pytest

from agents.hi_ppo.policies import TrainedRange
from des import Topology, build_workload, read_topology

THREE, FOUR = read_topology("east_central_west"), read_topology("four_uneven")
JOB = build_workload("llama2_7b")
LEARNT = TrainedRange.of([(THREE, JOB), (FOUR, JOB)])


def slower(topology: Topology, factor: float) -> Topology:
    """All links at a part of their bandwidth."""
    links = tuple(
        replace(link, bandwidth_bytes_per_s=link.bandwidth_bytes_per_s * factor)
        for link in topology.links
    )
    return replace(topology, links=links)


def test_what_was_learnt_on_lies_within():
    assert LEARNT.num_domains == (3.0, 4.0)
    assert LEARNT.misfits(THREE, JOB) == LEARNT.misfits(FOUR, JOB) == ()


def test_the_world_between_lies_within_and_the_latencies_are_those_of_single_links():
    latencies_s = [link.latency_s for world in (THREE, FOUR) for link in world.links]

    assert LEARNT.latency_s == (min(latencies_s), max(latencies_s))
    assert LEARNT.misfits(slower(THREE, 0.99), JOB) == ()


def test_measured_figures_may_pass_the_range_by_a_tenth_and_counts_may_not():
    assert LEARNT.misfits(slower(FOUR, 0.95), JOB) == LEARNT.misfits(slower(THREE, 0.95), JOB) == ()
    assert LEARNT.misfits(slower(FOUR, 0.85), JOB) + LEARNT.misfits(slower(THREE, 0.85), JOB)
    one_more = replace(JOB, num_microbatches=JOB.num_microbatches + 1)
    (told,) = LEARNT.misfits(THREE, one_more)
    assert told.startswith("num_microbatches ")


def test_a_world_outside_is_told_by_figure_and_range():
    alone = TrainedRange.of([(THREE, JOB)])
    longer = replace(JOB, layers=JOB.layers * 2)

    assert alone.misfits(FOUR, longer)[:2] == (
        "num_domains 4 is outside 3 to 3",
        "num_layers 64 is outside 32 to 32",
    )


def test_links_a_tenth_as_fast_are_outside_in_bandwidth_and_ratio():
    found = [text.split()[0] for text in LEARNT.misfits(slower(THREE, 0.1), JOB)]

    assert found == ["ratio", "bandwidth_bytes_per_s"]


def test_a_range_comes_back_from_a_checkpoint_as_it_was():
    assert TrainedRange.from_payload(LEARNT.payload()) == LEARNT
    with pytest.raises(ValueError, match="trained range: must hold num_domains"):
        TrainedRange.from_payload({"num_domains": [1, 2]})
    with pytest.raises(ValueError, match=r"ratio must be a least and a most, got \[1\.0\]"):
        TrainedRange.from_payload({**LEARNT.payload(), "ratio": [1.0]})


def test_a_range_of_nothing_or_upside_down_is_refused():
    with pytest.raises(ValueError, match="worlds must be one or more, got none"):
        TrainedRange.of([])
    with pytest.raises(ValueError, match="num_layers must have a least that is at most the most"):
        replace(LEARNT, num_layers=(3.0, 2.0))
