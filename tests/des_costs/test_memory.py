"""Whether plans fit: hand cases, and the models people would try."""

import pytest
from hypothesis import given
from sharing import replicas
from strategies import cases, plan, unit_domain

from des import (
    GradientExchange,
    InfeasiblePlacementError,
    Layer,
    Placement,
    Plan,
    Topology,
    Workload,
    build_workload,
    check_memory,
    domain_memory,
    read_topology,
    simulate,
)
from des.worlds import EAST_CENTRAL_WEST

EAST_CENTRAL_WEST_WORLD = read_topology(EAST_CENTRAL_WEST)


def unit_layer(num_parameters: float, activation_bytes: float) -> Layer:
    """A layer that keeps half of its activations for its weight gradient."""
    return Layer(
        forward_flops=1.0,
        input_gradient_flops=0.5,
        weight_gradient_flops=0.5,
        num_parameters=num_parameters,
        activation_bytes=activation_bytes,
        weight_input_bytes=activation_bytes / 2,
    )


def two_layers(num_microbatches: int) -> Workload:
    """Layers of 10 and 20 parameters that keep 3 and 5 bytes a microbatch."""
    return Workload(
        name="two",
        layers=tuple(unit_layer(size, kept) for size, kept in ((10.0, 3.0), (20.0, 5.0))),
        num_microbatches=num_microbatches,
        tokens_per_microbatch=1,
        message_bytes=0.0,
    )


def two_domains(memory_bytes: float) -> Topology:
    """East and West, of that much memory each; memory asks for no links."""
    return Topology.of(
        [unit_domain(name, memory_bytes=memory_bytes) for name in ("East", "West")], []
    )


def test_replicas_that_share_an_optimiser_state_hold_a_part_each():
    """Of 16 bytes a parameter 12 are the optimiser's; of 2 replicas each holds half of these."""
    whole, shared = (
        domain_memory(
            two_domains(1e3),
            two_layers(2),
            replicas([0, 0], [1, 1], exchange=GradientExchange(sharded=sharded)),
        )
        for sharded in (False, True)
    )
    assert [one.required_bytes for one in whole] == [30 * 16 + 3 + 5] * 2
    assert [one.required_bytes for one in shared] == [30 * (4 + 12 / 2) + 3 + 5] * 2


@pytest.mark.parametrize(
    ("schedule", "held"),
    [("1f1b", (2, 1)), ("gpipe", (4, 4))],  # of 4 microbatches on 2 stages
)
def test_memory_by_hand(schedule, held):
    """16 bytes a parameter, plus the activations of the microbatches in flight."""
    east, west = domain_memory(two_domains(1e3), two_layers(4), plan(0, 1, schedule=schedule))

    assert (east.domain, west.domain) == ("East", "West")
    assert (east.model_state_bytes, west.model_state_bytes) == (160.0, 320.0)
    assert (east.activation_bytes, west.activation_bytes) == (3.0 * held[0], 5.0 * held[1])
    assert east.required_bytes == 160.0 + 3.0 * held[0]
    assert east.capacity_bytes == 1e3
    assert east.fits
    assert east.overflow_fraction == 0.0


def test_one_stage_holds_one_microbatch_under_1f1b():
    east, west = domain_memory(two_domains(1e3), two_layers(4), plan(0, 0))

    assert east.required_bytes == 16 * 30 + (3 + 5)
    assert west.required_bytes == 0.0


def test_stages_of_one_domain_add_up():
    """Pattern 0,1,0 with 1f1b and 4 microbatches: in flight 3, 2 and 1."""
    layer = unit_layer(1.0, 1.0)
    workload = Workload(
        name="three",
        layers=(layer,) * 3,
        num_microbatches=4,
        tokens_per_microbatch=1,
        message_bytes=0.0,
    )

    east, west = domain_memory(two_domains(1e3), workload, plan(0, 1, 0))
    assert (east.model_state_bytes, east.activation_bytes) == (32.0, 4.0)
    assert (west.model_state_bytes, west.activation_bytes) == (16.0, 2.0)


def test_the_limit_itself_fits_and_one_byte_less_does_not():
    """East needs 16 x 10 + 2 x 3 = 166 bytes, West 16 x 20 + 5 = 325."""
    check_memory(two_domains(325.0), two_layers(4), plan(0, 1))
    with pytest.raises(InfeasiblePlacementError, match=r"domain West must hold at most 0\.0 GB"):
        check_memory(two_domains(324.0), two_layers(4), plan(0, 1))
    (_, west) = domain_memory(two_domains(250.0), two_layers(4), plan(0, 1))
    assert west.overflow_fraction == pytest.approx(0.3)


def test_the_domain_that_lacks_most_is_named():
    """East needs 166 bytes of 100, West 325 of 300: West misses less of what it has."""
    topology = Topology.of(
        [unit_domain("East", memory_bytes=100.0), unit_domain("West", memory_bytes=300.0)], []
    )
    with pytest.raises(InfeasiblePlacementError, match="plan: domain East must"):
        check_memory(topology, two_layers(4), plan(0, 1))


def test_70b_does_not_fit_one_domain_of_eight_80_gb_gpus():
    """68 976 648 192 parameters x 16 bytes = 1103.6 GB; 80 layers x 34 s b h = 91.3 GB; 640 GB."""
    message = (
        r"plan: domain East must hold at most 640\.0 GB, got 1194\.9 GB "
        r"\(1103\.6 GB model state and 91\.3 GB activations\)"
    )
    with pytest.raises(InfeasiblePlacementError, match=message):
        check_memory(EAST_CENTRAL_WEST_WORLD, build_workload("llama_70b"), plan(*[0] * 80))


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_70b_fits_three_domains_under_1f1b_alone(schedule):
    """28 layers: 387 GB of state; 32 GB of activations a microbatch, of which 1f1b holds 3."""
    placement = Placement.contiguous([0, 1, 2], [28, 26, 26])
    chosen = Plan(placement=placement, schedule=schedule)
    workload = build_workload("llama_70b")

    fits = all(m.fits for m in domain_memory(EAST_CENTRAL_WEST_WORLD, workload, chosen))
    assert fits == (schedule == "1f1b")
    assert simulate(EAST_CENTRAL_WEST_WORLD, workload, chosen).fits_memory == fits
    if fits:
        check_memory(EAST_CENTRAL_WEST_WORLD, workload, chosen)


@given(case=cases())
def test_model_state_is_16_bytes_a_parameter_wherever_it_lies(case):
    topology, workload, chosen = case
    memory = domain_memory(topology, workload, chosen)

    state_bytes = sum(domain.model_state_bytes for domain in memory)
    assert state_bytes == pytest.approx(16 * sum(workload.num_parameters))
    used = {topology.domains[stage.domain].name for stage in chosen.placement.stages}
    for domain in memory:
        assert domain.domain in used or domain.required_bytes == 0.0


@given(case=cases())
def test_a_plan_is_refused_exactly_when_some_domain_overflows(case):
    topology, workload, chosen = case
    memory = domain_memory(topology, workload, chosen)

    try:
        check_memory(topology, workload, chosen)
    except InfeasiblePlacementError:
        assert any(domain.overflow_fraction > 0 for domain in memory)
    else:
        assert all(domain.fits for domain in memory)
    assert all(domain.fits == (domain.overflow_fraction == 0.0) for domain in memory)


@given(case=cases())
def test_1f1b_needs_no_more_memory_than_gpipe(case):
    topology, workload, chosen = case
    of_1f1b, of_gpipe = (
        domain_memory(topology, workload, Plan(placement=chosen.placement, schedule=schedule))
        for schedule in ("1f1b", "gpipe")
    )

    for less, more in zip(of_1f1b, of_gpipe, strict=True):
        assert less.required_bytes <= more.required_bytes
