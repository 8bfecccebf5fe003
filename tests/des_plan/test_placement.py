"""Placements, the stages they form and what they send."""

from dataclasses import replace

import pytest
from bound_cases import job, site, sites
from hypothesis import given
from hypothesis import strategies as st
from strategies import ALLOWED_SCHEDULES, free_world, placements, plan, unit_workload, workloads

from des import Parallelism, Placement, Plan, Stage, cross_domain_bytes, simulate
from des.compiled.simulate import simulate_compiled
from des.plan.plan import replica_stages, split_evenly
from des.plan.plan_texts import placement_text

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


@pytest.mark.parametrize("text", ["0*4,1*4,1*4", "0,1,1*2", "0*3,0", "1,0*3+3,0*1"])
def test_counted_layers_side_by_side_in_one_domain_are_refused(text):
    """They would be one stage without a word; ``0,1,1,0`` names the domain of each layer."""
    with pytest.raises(ValueError, match=r"must be one item, such as 1\*8, or 1\*4\+4 for two"):
        Placement.parse(text)
    assert str(Placement.parse("0,1,1,0")) == "0*1,1*2,0*1"


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


def test_layers_of_each_stage_are_read_from_text_and_written_to_it():
    placement = Placement.parse("East*9+10+9,West*4", NAMES)

    assert placement.domain_of_layer == (0,) * 28 + (2,) * 4
    assert placement.stage_layers == ((9, 10, 9), ())
    assert Placement.parse(str(placement)) == placement
    assert placement_text(placement, NAMES) == "East*9+10+9,West*4"
    with pytest.raises(ValueError, match=r"stage_layers must add up .* runs 7; got \(\(3, 3\),\)"):
        Placement(domain_of_layer=(0,) * 7, stage_layers=((3, 3),))
    with pytest.raises(ValueError, match="placement: each item"):
        Placement.parse("0*3+0")


@given(
    num_stages=st.integers(2, 4), num_layers=st.integers(4, 9), num_microbatches=st.integers(1, 5)
)
def test_even_layers_of_stages_that_are_given_change_nothing(
    num_stages, num_layers, num_microbatches
):
    """Two sites, of equal numbers of stages."""
    topology = sites(site("A"), site("B"))
    workload = job(num_layers=2 * num_layers, num_microbatches=num_microbatches)
    even = Placement.even(2, 2 * num_layers)
    parallelism = (Parallelism(pipeline=num_stages),) * 2
    given_layers = (split_evenly(num_layers, num_stages),) * 2
    stages = [(domain, own) for domain in (0, 1) for own in given_layers[domain]]
    assert Placement.of_stages(stages) == even

    plans = [Plan(placement=even, parallelism=parallelism)]
    plans.append(replace(plans[0], placement=replace(even, stage_layers=given_layers)))
    assert simulate(topology, workload, plans[0]) == simulate(topology, workload, plans[1])


@pytest.mark.parametrize("layers", [(1, 3), (2, 2), (3, 1)])
def test_a_device_computes_for_the_layers_that_it_is_given(layers):
    """All forwards, then all backwards: the slowest device is at work without a break."""
    topology, workload = sites(site("A")), job(num_layers=4, num_microbatches=64)
    plan = Plan(
        placement=Placement(domain_of_layer=(0,) * 4, stage_layers=(layers,)),
        parallelism=(Parallelism(pipeline=2),),
    )
    busy_s = [stage.busy_s for stage in simulate(topology, workload, plan).stages]

    assert [stage.num_layers for stage in plan.stages] == list(layers)
    assert busy_s[0] / busy_s[1] == pytest.approx(layers[0] / layers[1], rel=1e-6)
    compiled = simulate_compiled(topology, workload, plan)
    assert compiled == simulate(topology, workload, plan)


@pytest.mark.parametrize("pipeline", [1, 3])
def test_stages_that_a_pipeline_has_not_are_refused(pipeline):
    parallelism = (Parallelism(pipeline=pipeline),)
    with pytest.raises(
        ValueError, match=f"stage_layers of domain 0 must be of {pipeline} stages, as its pipeline"
    ):
        replica_stages(Placement.parse("0*2+2"), parallelism)
