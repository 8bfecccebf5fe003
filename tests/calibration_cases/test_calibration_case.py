"""Cases refuse what a trace cannot hold, and say what their NPUs are."""

import re
from dataclasses import replace

import pytest
from sharing import gpus
from strategies import plan, unit_workload, world

from calibration.cases.case import Measurement, PlacementCase, computing_times_s
from des import (
    DiLoCo,
    Domain,
    GradientExchange,
    Layer,
    Parallelism,
    Placement,
    Plan,
    Topology,
    Transport,
    UniformLaw,
    Workload,
)
from des.world.access import Access

LINKS = {"AB": (1.0, 1.0), "BA": (1.0, 1.0), "BC": (1.0, 1.0), "CB": (1.0, 1.0)}
WORKLOAD = unit_workload([(1.0, 2.0)] * 4, num_microbatches=2, message_bytes=1.0)
EVEN = plan(0, 0, 1, 1)
REPLICAS = Plan(
    placement=Placement(domain_of_layer=(0, 0, 1, 1)),
    replicas=(Placement(domain_of_layer=(2, 2, 2, 2)),),
)


def three_domains(num_gpus: tuple[int, int, int] = (4, 4, 4), **transport: object) -> Topology:
    """A, B and C in a row."""
    domains: list[Domain] = [
        gpus(name, count, (1.0, 0.0)) for name, count in zip("ABC", num_gpus, strict=True)
    ]
    return replace(world("ABC", LINKS), domains=tuple(domains), transport=Transport(**transport))


def moving() -> Topology:
    law = UniformLaw(bandwidth_fluctuation=0.1, latency_jitter=0.1, update_interval_s=1.0)
    return world("ABC", LINKS, dynamics=law).epoch_of(1)


def with_uplink() -> Topology:
    access = Access(uplink_bytes_per_s=1.0, downlink_bytes_per_s=1.0)
    first, *others = three_domains().domains
    return replace(three_domains(), domains=(replace(first, access=access), *others))


@pytest.mark.parametrize(
    ("topology", "chosen", "reason"),
    [
        (three_domains(sharing="fair"), EVEN, "transport.sharing must be fifo or none, got 'fair'"),
        (three_domains(half_duplex=True), EVEN, "transport.half_duplex must be False, got True"),
        (three_domains(window_bytes=1e5), EVEN, "transport.window_bytes must be None, got"),
        (
            three_domains(endpoints="blocking"),
            EVEN,
            "transport.endpoints must be overlapped or one_in_flight, got 'blocking'",
        ),
        (moving(), EVEN, "topology.movement must be None, got links that move"),
        (with_uplink(), EVEN, "domains and links must have no site, uplink, downlink or cap"),
        (world("A", {}), plan(0, 0, 0, 0), "topology must have at least 2 domains, got 1"),
        (
            three_domains(),
            replace(REPLICAS, synchronisation=DiLoCo(steps_between=5)),
            "plan.synchronisation must be after every step, got DiLoCo",
        ),
        (
            three_domains(),
            replace(REPLICAS, exchange=GradientExchange(tree=(0,))),
            "plan.exchange.tree must be empty",
        ),
        (
            three_domains(),
            replace(REPLICAS, exchange=GradientExchange(sharded=True)),
            "plan.exchange.sharded must be False",
        ),
        (
            three_domains(),
            replace(EVEN, parallelism=(Parallelism(pipeline=2),) * 3),
            "parallelism.pipeline of domain A must be 1 at granularity domain",
        ),
        (
            three_domains(),
            replace(REPLICAS, exchange=GradientExchange(overlapped=False)),
            "plan.exchange.overlapped must be True where a replica has several devices",
        ),
    ],
)
def test_a_case_refuses_what_a_trace_cannot_hold(topology: Topology, chosen: Plan, reason: str):
    with pytest.raises(ValueError, match="^case: " + re.escape(reason)):
        PlacementCase(topology=topology, workload=WORKLOAD, plan=chosen)


@pytest.mark.parametrize(
    ("order", "is_refused"), [((0, 1, 2), False), ((1, 2, 0), False), ((2, 1, 0), True)]
)
def test_a_replica_on_each_domain_goes_in_their_order(order: tuple[int, ...], is_refused: bool):
    """ASTRA-sim sums up over all NPUs in its own order, which may be turned but not reversed."""
    first, *others = (Placement(domain_of_layer=(domain,) * 4) for domain in order)
    workload = replace(WORKLOAD, num_microbatches=3)
    chosen = Plan(placement=first, replicas=tuple(others))

    if is_refused:
        with pytest.raises(ValueError, match=r"plan.replicas must follow .* domains \[2, 1, 0\]"):
            PlacementCase(topology=three_domains(), workload=workload, plan=chosen)
    else:
        PlacementCase(topology=three_domains(), workload=workload, plan=chosen)
    assert PlacementCase(
        topology=three_domains(), workload=workload, plan=chosen, granularity="gpu"
    ).used_domains == (0, 1, 2)


def test_a_case_refuses_an_unknown_granularity_and_a_plan_of_another_workload():
    with pytest.raises(ValueError, match="granularity must be one of domain, gpu; got 'rack'"):
        PlacementCase(topology=three_domains(), workload=WORKLOAD, plan=EVEN, granularity="rack")
    with pytest.raises(ValueError, match="domain_of_layer must hold one domain for each of the 4"):
        PlacementCase(topology=three_domains(), workload=WORKLOAD, plan=plan(0, 1))


def test_replicas_go_with_pipelines_inside_domains_at_no_granularity():
    chosen = replace(REPLICAS, parallelism=(Parallelism(pipeline=2),) * 3)

    with pytest.raises(ValueError, match=r"pipeline of domain A must be 1 .* or with replicas"):
        PlacementCase(topology=three_domains(), workload=WORKLOAD, plan=chosen, granularity="gpu")


def test_exchanges_after_the_passes_are_for_replicas_of_one_device():
    single = (Placement(domain_of_layer=(domain,) * 4) for domain in (0, 1))
    first, second = single
    chosen = Plan(placement=first, replicas=(second,), exchange=GradientExchange(overlapped=False))

    assert PlacementCase(topology=three_domains(), workload=WORKLOAD, plan=chosen).used_domains == (
        0,
        1,
    )


def test_npus_of_a_case_are_its_domains_or_their_gpus_in_use():
    """Of 4, 6 and 3 GPUs, tensor 2 x data 1 and 2 x 2 use 2 and 4; C has no layers."""
    topology = three_domains((4, 6, 3))
    sharing = (Parallelism(tensor=2), Parallelism(tensor=2, data=2), Parallelism(tensor=3))
    shared = replace(EVEN, parallelism=sharing)
    whole = PlacementCase(topology=topology, workload=WORKLOAD, plan=EVEN, granularity="gpu")
    part = PlacementCase(topology=topology, workload=WORKLOAD, plan=shared, granularity="gpu")
    one = PlacementCase(topology=topology, workload=WORKLOAD, plan=EVEN)

    assert (one.gpus_per_domain, one.num_npus, one.num_endpoint_pairs) == (1, 3, 1)
    assert (whole.gpus_per_domain, whole.num_npus, whole.num_endpoint_pairs) == (6, 18, 4)
    assert (part.gpus_per_domain, part.num_npus, part.num_endpoint_pairs) == (4, 12, 2)
    assert part.used_domains == (0, 1)


def test_a_domain_has_two_npus_at_least():
    """A dimension of one NPU is none in ASTRA-sim."""
    case = PlacementCase(
        topology=three_domains((1, 1, 1)), workload=WORKLOAD, plan=EVEN, granularity="gpu"
    )

    assert case.gpus_per_domain == 2


@pytest.mark.parametrize(
    ("flops_per_s", "granularity", "peak"),
    [
        (1.0, "domain", 1e12),
        (4e13, "domain", 4 * 4e13),
        (4e13, "gpu", 4e13),
        (1e15, "domain", 1e15),
    ],
)
def test_peak_is_that_of_the_first_npu_in_use_within_bounds(
    flops_per_s: float, granularity: str, peak: float
):
    topology = three_domains()
    used = replace(topology.domains[1], gpu_peak_flops_per_s=flops_per_s)
    topology = replace(topology, domains=(topology.domains[0], used, topology.domains[2]))

    case = PlacementCase(
        topology=topology, workload=WORKLOAD, plan=plan(1, 1, 2, 2), granularity=granularity
    )

    assert case.peak_flops_per_s == pytest.approx(peak, rel=1e-15)


def test_gpus_compute_without_what_they_tell_each_other():
    """Tensor 2 on links of 1 byte/s: a layer takes 4 s / 2 GPUs, and 2 sums of 1 byte each."""
    layer = Layer(
        forward_flops=4.0,
        input_gradient_flops=4.0,
        weight_gradient_flops=4.0,
        num_parameters=1.0,
        activation_bytes=1.0,
        weight_input_bytes=1.0,
    )
    workload = Workload(
        name="two",
        layers=(layer,) * 2,
        num_microbatches=1,
        tokens_per_microbatch=1,
        message_bytes=1.0,
    )
    chosen = replace(plan(0, 1), parallelism=(Parallelism(tensor=2),) * 3)
    for granularity, forward_s in (("domain", 4.0), ("gpu", 2.0)):
        case = PlacementCase(
            topology=three_domains(), workload=workload, plan=chosen, granularity=granularity
        )

        assert computing_times_s(case)[0] == {
            "F": forward_s,
            "B": forward_s + 2.0,
            "D": forward_s,
            "W": 2.0,
        }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("makespan_s", -1.0),
        ("makespan_s", float("nan")),
        ("communication_bytes", float("inf")),
        ("exposed_s", (1.0, float("nan"))),
    ],
)
def test_a_measurement_refuses_what_is_no_time_and_no_size(field: str, value: object):
    figures = {"makespan_s": 1.0, "communication_bytes": 1.0, "exposed_s": (0.5, 0.0)}

    with pytest.raises(ValueError, match=f"measurement: {field}"):
        Measurement(**{**figures, field: value})
