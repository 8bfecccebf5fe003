"""Threshold of change: figures in use count, others do not."""

from dataclasses import replace

import pytest
from examples import SAMPLE
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import plan, unit_domain, world

from agents.decision.threshold import ReplanThreshold

LINKS = dict.fromkeys(("AB", "BA", "AC", "CA", "BC", "CB"), (4.0, 1.0))
THREE = world("ABC", LINKS)


def changed(**links):
    return world("ABC", LINKS | links)


@pytest.mark.parametrize(
    ("links", "is_exceeded"),
    [
        ({"AB": (3.0, 1.0)}, True),
        ({"BA": (5.0, 1.0)}, True),
        ({"AB": (4.0, 1.3)}, True),
        ({"AB": (3.3, 1.1)}, False),
        ({"AC": (1.0, 9.0), "BC": (1.0, 9.0)}, False),
    ],
)
def test_links_between_neighbouring_stages_count_and_others_do_not(links, is_exceeded):
    """A quarter of the bandwidth, or 0.3 of the latency, is more than a fifth."""
    threshold = ReplanThreshold(share=0.2)

    assert threshold.is_exceeded(plan(0, 1), THREE, changed(**links)) == is_exceeded


def test_links_between_replicas_count():
    replicas = replace(plan(0, 0), replicas=(plan(2, 2).placement,))
    slow = changed(AC=(1.0, 1.0))

    assert ReplanThreshold(share=0.2).is_exceeded(replicas, THREE, slow)
    assert not ReplanThreshold(share=0.2).is_exceeded(plan(0, 1), THREE, slow)


def test_speed_and_memory_of_domains_in_use_count_and_lost_links_and_domains_do():
    threshold = ReplanThreshold(share=0.2)
    small = replace(THREE, domains=(unit_domain("A", memory_bytes=1.0), *THREE.domains[1:]))

    assert threshold.is_exceeded(plan(0, 1), THREE, small)
    assert not threshold.is_exceeded(plan(1, 2), THREE, small)
    cut = replace(THREE, links=())
    assert threshold.is_exceeded(plan(0, 1), THREE, cut)
    assert not threshold.is_exceeded(plan(1, 1), THREE, cut)
    lost = world("AB", {"AB": (4.0, 1.0), "BA": (4.0, 1.0)})
    assert threshold.is_exceeded(plan(2, 2), THREE, lost)


@given(share=st.floats(0.0, 2.0), factor=st.floats(0.1, 3.0))
@settings(max_examples=SAMPLE)
def test_a_change_counts_from_its_share_on(share, factor):
    now = changed(AB=(4.0 * factor, 1.0))

    expected = abs(4.0 * factor - 4.0) > share * 4.0
    assert ReplanThreshold(share=share).is_exceeded(plan(0, 1), THREE, now) == expected


def test_a_negative_share_is_refused():
    with pytest.raises(ValueError, match="replan threshold: share must be finite and not negative"):
        ReplanThreshold(share=-0.1)
