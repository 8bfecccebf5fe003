"""Explanations against cases worked out by hand."""

import pytest

from agents.hi_ppo.explanation import explain
from des import Layer, Link, Placement, Plan, Topology, Workload, simulate
from scenarios.reproduce.unit_world import unit_domain


def world(bandwidth_bytes_per_s: float, memory_bytes: float = 1e12) -> Topology:
    """Two domains of 1 FLOP/s and links without latency."""
    domains = [unit_domain(name, memory_bytes=memory_bytes) for name in ("East", "West")]
    links = [
        Link(
            source=one,
            target=other,
            bandwidth_bytes_per_s=bandwidth_bytes_per_s,
            latency_s=0.0,
        )
        for one, other in (("East", "West"), ("West", "East"))
    ]
    return Topology.of(domains, links)


def job(num_microbatches: int, message_bytes: float = 0.0) -> Workload:
    """Four layers of 1 s forward and 2 s backward."""
    layer = Layer(
        forward_flops=1.0,
        input_gradient_flops=1.0,
        weight_gradient_flops=1.0,
        num_parameters=1.0,
        activation_bytes=1.0,
        weight_input_bytes=1.0,
    )
    return Workload(
        name="job",
        layers=(layer,) * 4,
        num_microbatches=num_microbatches,
        tokens_per_microbatch=1,
        message_bytes=message_bytes,
    )


EVEN = Plan(placement=Placement.parse("0*2,1*2"))


def test_an_even_split_of_free_links_is_told_in_the_numbers_of_the_closed_form():
    """Even: (m + p - 1)(f + b) = 9 * 6 s.

    Three layers above: they have work from the start to the end, 8 * 9 s. One above: the lower
    stage begins after 1 s, works for 8 * 9 s, and the last backward above takes 2 s.
    """
    found = explain(world(1e9), job(8), EVEN, schedules=("1f1b", "gpipe"))

    assert found.iteration_s == pytest.approx(54.0)
    assert found.bottleneck == "East"
    assert found.bottleneck_busy_fraction == pytest.approx(48.0 / 54.0)
    assert found.transfer_compute_ratio == 0.0
    (border,) = found.borders
    assert (border.above, border.below) == ("East", "West")
    assert border.layer_up_s == pytest.approx(72.0 - 54.0)
    assert border.layer_down_s == pytest.approx(75.0 - 54.0)
    assert found.depth_change_s == {"gpipe": pytest.approx(0.0)}


def test_a_slow_link_is_named_as_the_bottleneck():
    found = explain(world(1.0), job(8, message_bytes=20.0), EVEN)

    assert found.bottleneck == "East->West"
    assert found.transfer_compute_ratio == pytest.approx(20.0 / 2.0)
    assert "East->West is busy" in found.lines()[0]


def test_each_change_is_what_the_simulator_says_of_the_changed_plan():
    topology, workload = world(1.0), job(8, message_bytes=3.0)
    found = explain(topology, workload, EVEN)

    def makespan_s(text: str, schedule: str = "1f1b") -> float:
        plan = Plan(placement=Placement.parse(text), schedule=schedule)
        return simulate(topology, workload, plan).makespan_s

    now_s = makespan_s("0*2,1*2")
    assert found.borders[0].layer_down_s == makespan_s("0*1,1*3") - now_s
    assert found.borders[0].layer_up_s == makespan_s("0*3,1*1") - now_s
    assert found.depth_change_s == {
        name: makespan_s("0*2,1*2", name) - now_s
        for name in ("1f1b_2x", "1f1b_4x", "1f1b_8x", "gpipe")
    }


def test_neighbours_without_layers_or_memory_are_left_out():
    """Two layers weigh 32 bytes; what 8 forwards of them keep weighs 16, under 1F1B 4 at most."""
    found = explain(world(1e9, memory_bytes=40.0), job(8), EVEN, schedules=("gpipe",))

    assert found.depth_change_s == {}
    assert found.borders[0].layer_down_s is found.borders[0].layer_up_s is None
    assert found.lines()[1] == "East | West: no layer can move."


def test_plans_of_several_replicas_are_refused():
    plan = Plan(placement=Placement.parse("0*4"), replicas=(Placement.parse("1*4"),))
    with pytest.raises(ValueError, match="plan must have one pipeline, got 2 replicas"):
        explain(world(1.0), job(8), plan)
