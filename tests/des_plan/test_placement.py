"""Placements, the stages they form and what they send."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import ALLOWED_SCHEDULES, free_world, placements, plan, unit_workload, workloads

from des import Placement, Plan, Stage, cross_domain_bytes

NAMES = ("East", "Central", "West")


@pytest.mark.parametrize(
    ("text", "domain_of_layer"),
    [
        ("0*2,1*1,2*3", (0, 0, 1, 2, 2, 2)),
        ("0,0,1,2", (0, 0, 1, 2)),
        ("[0, 1, 0, 1]", (0, 1, 0, 1)),
        ("East*2,West*1,1", (0, 0, 2, 1)),
        (" East * 2 , Central ", (0, 0, 1)),
        ("7", (7,)),
    ],
)
def test_placements_are_read_from_text(text, domain_of_layer):
    assert Placement.parse(text, NAMES).domain_of_layer == domain_of_layer


@pytest.mark.parametrize(
    "text", ["", "0*0", "0,,1", "0*-1", "-1", "0*1.5", "Mars", "0*2*3", "*3", "0*100001"]
)
def test_a_text_that_is_no_placement_is_refused(text):
    with pytest.raises(ValueError, match=r"placement: each item .* or a name of East, .*; got '"):
        Placement.parse(text, NAMES)


@given(placement=placements(3, 12))
def test_text_and_placement_say_the_same(placement):
    numbers = ",".join(f"{stage.domain}*{stage.num_layers}" for stage in placement.stages)
    names = ",".join(f"{NAMES[stage.domain]}*{stage.num_layers}" for stage in placement.stages)

    assert Placement.parse(numbers) == Placement.parse(names, NAMES) == placement


def test_stages_are_maximal_runs_by_hand():
    stages = Placement(domain_of_layer=(0, 0, 1, 0, 2, 2)).stages

    assert [(s.index, s.domain, s.first_layer, s.num_layers) for s in stages] == [
        (0, 0, 0, 2),
        (1, 1, 2, 1),
        (2, 0, 3, 1),
        (3, 2, 4, 2),
    ]
    assert stages[3].layers == slice(4, 6)


@given(placement=placements(4, 15))
def test_stages_cover_all_layers_and_neighbours_differ(placement):
    again = [stage.domain for stage in placement.stages for _ in range(stage.num_layers)]
    assert tuple(again) == placement.domain_of_layer
    for upper, lower in zip(placement.stages, placement.stages[1:], strict=False):
        assert upper.domain != lower.domain
        assert upper.layers.stop == lower.first_layer
    assert placement.num_borders == len(placement.stages) - 1


@given(num_domains=st.integers(1, 6), num_layers=st.integers(6, 100))
def test_an_even_split_differs_by_one_layer_at_most(num_domains, num_layers):
    stages = Placement.even(num_domains, num_layers).stages
    counts = [stage.num_layers for stage in stages]

    assert [stage.domain for stage in stages] == list(range(num_domains))
    assert sum(counts) == num_layers
    assert counts == sorted(counts, reverse=True)
    assert counts[0] - counts[-1] <= 1


def test_contiguous_runs_skip_empty_ones():
    placement = Placement.contiguous([2, 0, 1], [2, 0, 1])

    assert placement.domain_of_layer == (2, 2, 1)
    assert placement.stages == (
        Stage(index=0, domain=2, first_layer=0, num_layers=2),
        Stage(index=1, domain=1, first_layer=2, num_layers=1),
    )


@pytest.mark.parametrize("domain", [-1, 0.0, True, "0", None])
def test_a_layer_needs_a_domain_by_number(domain):
    with pytest.raises(
        ValueError, match=f"placement: layer 1 must name a domain .* got {domain!r}"
    ):
        Placement(domain_of_layer=(0, domain))


def test_an_empty_placement_is_refused():
    with pytest.raises(ValueError, match="placement: domain_of_layer must hold at least one"):
        Placement(domain_of_layer=())


def test_a_placement_must_match_workload_and_world():
    workload = unit_workload([(1, 1)] * 3, num_microbatches=1)
    with pytest.raises(ValueError, match="each of the 3 layers of unit, got 2"):
        Placement(domain_of_layer=(0, 1)).check_against(free_world(2), workload)
    with pytest.raises(ValueError, match="layer 1 must be on one of the domains A 0, B 1; got 2"):
        Placement(domain_of_layer=(0, 2, 1)).check_against(free_world(2), workload)
    Placement(domain_of_layer=(0, 0, 1)).check_against(free_world(2), workload)


def test_a_plan_needs_a_known_schedule():
    assert plan(0).schedule == "1f1b"
    with pytest.raises(ValueError, match=f"{ALLOWED_SCHEDULES} 'zb'"):
        Plan(placement=Placement(domain_of_layer=(0,)), schedule="zb")


@given(workload=workloads(), draw=st.data())
def test_cross_domain_bytes_count_every_border_twice_a_microbatch(workload, draw):
    placement = draw.draw(placements(3, workload.num_layers))
    pairs = zip(placement.domain_of_layer, placement.domain_of_layer[1:], strict=False)
    borders = sum(here != there for here, there in pairs)

    expected = 2 * workload.num_microbatches * workload.message_bytes * borders
    assert cross_domain_bytes(workload, placement) == pytest.approx(expected)
