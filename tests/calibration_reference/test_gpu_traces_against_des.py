"""Traces of GPUs that share layers take nearly as long as `des` says."""

from dataclasses import replace

import pytest
from examples import examples
from hypothesis import example, given, settings
from sharing import FEW, gpus
from strategies import world
from trace_cases import engine, makespan_s, pipelines, replicated, shared
from traces_and_des import in_a_row, measured

from calibration.cases.case import PlacementCase
from calibration.fit.prediction import predict
from calibration.reference.astra_config import as_seen
from calibration.reference.chakra_trace import build_traces
from des import Corrections, GradientExchange, Nodes, Parallelism, Placement, Plan


@settings(max_examples=examples(FEW))
@given(case=shared(replicated()))
def test_gpus_of_replicas_come_close_where_messages_never_meet(case: PlacementCase):
    """Sums inside a domain come in turn, as a device does them; their latencies are left over."""
    seen = as_seen(case, "unaware")
    traces = build_traces(seen, tensor_sums="layer")

    found, predicted = measured(seen, traces, engine(seen, traces, "unaware")), predict(seen)

    assert found.makespan_s == pytest.approx(predicted.makespan_s, rel=5e-3)
    assert found.communication_bytes == pytest.approx(predicted.communication_bytes, rel=1e-3)


def on_gpus(parallelism: Parallelism, *, num_layers: int = 6) -> PlacementCase:
    """Layers of a second on 4 GPUs in each of three domains; messages of 0.1 to 0.4 s."""
    case = in_a_row(*(layer * 3 // num_layers for layer in range(num_layers)))
    layers = tuple(replace(layer, num_parameters=1e3) for layer in case.workload.layers)
    domains = tuple(
        replace(gpus(name, 4, (1e6, 1e-5)), gpu_memory_bandwidth_bytes_per_s=1e15) for name in "ABC"
    )
    links = tuple(
        replace(link, bandwidth_bytes_per_s=link.bandwidth_bytes_per_s * 1e3)
        for link in case.topology.links
    )
    return replace(
        case,
        topology=replace(case.topology, domains=domains, links=links),
        workload=replace(case.workload, layers=layers, message_bytes=2e3),
        plan=replace(case.plan, parallelism=(parallelism,) * 3),
        granularity="gpu",
    )


@pytest.mark.parametrize("backend", ["pairwise", "unaware"])
@pytest.mark.parametrize("sharing", ["1x1x1", "4x1x1", "1x4x1", "2x2x1", "2x1x2", "1x2x2"])
def test_gpus_take_nearly_as_long_as_the_device_they_are(sharing: str, backend: str):
    """Left over are latencies of 10 us: those of local moves, of signals, of sums in one."""
    case = as_seen(on_gpus(Parallelism.parse(sharing)), backend)
    traces = build_traces(case)
    found = measured(case, traces, engine(case, traces, backend))
    predicted = predict(case)

    assert found.makespan_s == pytest.approx(predicted.makespan_s, rel=2e-3)
    assert found.exposed_s == pytest.approx(predicted.exposed_s, abs=2e-3 * found.makespan_s)
    assert found.communication_bytes == pytest.approx(predicted.communication_bytes, rel=1e-3)


@pytest.mark.parametrize("backend", ["pairwise", "unaware"])
@pytest.mark.parametrize("sharing", ["1x1x2v3", "1x2x2v3", "2x1x2v3", "1x1x4v3"])
def test_interleaved_chunks_of_a_domain_take_as_long(sharing: str, backend: str):
    """Twelve layers in one domain; the last device sends to the first as well."""
    case = on_gpus(Parallelism.parse(sharing), num_layers=12)
    plan = replace(
        case.plan, placement=Placement(domain_of_layer=(1,) * 12), schedule="interleaved_1f1b"
    )
    workload = replace(case.workload, num_microbatches=4)
    case = as_seen(replace(case, plan=plan, workload=workload), backend)
    traces = build_traces(case)
    found, predicted = measured(case, traces, engine(case, traces, backend)), predict(case)

    assert found.makespan_s == pytest.approx(predicted.makespan_s, rel=2e-3)
    assert found.communication_bytes == pytest.approx(predicted.communication_bytes, rel=1e-3)


def test_chunks_that_turn_cannot_be_exported():
    with pytest.raises(ValueError, match=r"chunk_order of domain A must be loop, .* got wave"):
        on_gpus(Parallelism.parse("1x1x2w2"), num_layers=12)


def test_sums_layer_by_layer_have_all_their_latencies():
    """Two layers, two sums each, 2 x 3 steps of 10 us: 240 us a pass instead of 60 us."""
    case = on_gpus(Parallelism(tensor=4))
    together, apart = (
        makespan_s(engine(case, build_traces(case, tensor_sums=sums))) for sums in ("pass", "layer")
    )

    # on the critical path are the passes of F and B of the first domain to begin and to end with
    assert apart - together > 4 * 180e-6
    assert abs(apart - predict(case).makespan_s) < abs(together - predict(case).makespan_s)


def test_parts_of_a_message_go_on_as_a_whole():
    """Parts that travel by themselves would be on both links of the way at a time."""
    case = on_gpus(Parallelism(data=4), num_layers=3)
    case = replace(
        case,
        workload=replace(case.workload, message_bytes=20e3),
        plan=replace(case.plan, placement=Placement(domain_of_layer=(0, 2, 2))),
    )

    found = makespan_s(engine(case, build_traces(case)))

    assert found == pytest.approx(predict(case).makespan_s, rel=1e-3)


def of_half_bytes() -> PlacementCase:
    """Messages in parts of 333.5 bytes, which become 334."""
    case = on_gpus(Parallelism(data=3))
    return replace(case, workload=replace(case.workload, message_bytes=1000.5))


@settings(max_examples=examples(FEW))
@given(case=shared(pipelines(endpoints=["overlapped"])))
@example(case=of_half_bytes())
def test_gpus_of_any_device_come_close_to_it(case: PlacementCase):
    """Whatever the shapes of the devices and routes; sums over memory and signals are left over.

    Four GPUs send at least 250 bytes each, to the nearest byte.
    """
    traces = build_traces(case, tensor_sums="layer")

    found, predicted = measured(case, traces, engine(case, traces)), predict(case)

    assert found.makespan_s == pytest.approx(predicted.makespan_s, rel=0.05)
    assert found.communication_bytes == pytest.approx(predicted.communication_bytes, rel=0.5 / 250)


@pytest.mark.parametrize("bucket_bytes", [None, 4e3])
def test_replicas_inside_domains_pause_for_their_sums(bucket_bytes: float | None):
    """At granularity ``domain`` sums inside a domain are pauses, to the microsecond."""
    case = replace(on_gpus(Parallelism(tensor=2, data=2)), granularity="domain")
    exchange = GradientExchange(bucket_bytes=bucket_bytes)
    case = replace(case, plan=replace(case.plan, exchange=exchange))
    traces = build_traces(case)

    found, predicted = measured(case, traces, engine(case, traces)), predict(case)

    assert found.makespan_s == pytest.approx(predicted.makespan_s, abs=1e-5)
    assert found.exposed_s == pytest.approx(predicted.exposed_s, abs=1e-5)


@pytest.mark.parametrize("sharing", ["1x4x1", "4x1x1", "2x2x1"])
def test_domains_of_several_nodes_pause_for_both_levels(sharing: str):
    """At granularity ``domain`` all that GPUs tell each other is a pause; GPUs are refused."""
    nodes = Nodes(
        gpus_per_node=2,
        nics_per_node=1,
        nic_bandwidth_bytes_per_s=1e4,
        nic_latency_s=1e-3,
        tensor_across_nodes=True,
    )
    flat = replace(on_gpus(Parallelism.parse(sharing)), granularity="domain")
    domains = tuple(replace(one, nodes=nodes) for one in flat.topology.domains)
    case = replace(flat, topology=replace(flat.topology, domains=domains))
    traces = build_traces(case)

    found, predicted = measured(case, traces, engine(case, traces)), predict(case)
    assert found.makespan_s == pytest.approx(predicted.makespan_s, abs=1e-5)
    assert found.exposed_s == pytest.approx(predicted.exposed_s, abs=1e-5)
    assert predicted.makespan_s > predict(flat).makespan_s + 0.1
    with pytest.raises(ValueError, match=r"case: nodes of domain A must be left out .* of 2 GPUs"):
        replace(case, granularity="gpu")


def test_replicas_of_several_devices_reduce_inside_first():
    """Two replicas of two domains each, of 2 x 2 GPUs: at both granularities as `des` says.

    There are as many rings between domains as parts of a message. While one is under way another
    has the link, which hides latencies that the steps of a single ring have in full, here of 1 ms,
    and lets a domain whose neighbour is late end up to a part earlier.
    """
    links = {f"{a}{b}": (1e4, 1e-3) for a in "ABCD" for b in "ABCD" if a != b}
    case = on_gpus(Parallelism(tensor=2, data=2), num_layers=3)
    topology = world("ABCD", links)
    domains = tuple(replace(case.topology.domains[0], name=name) for name in "ABCD")
    chosen = Plan(
        placement=Placement(domain_of_layer=(0, 0, 1)),
        replicas=(Placement(domain_of_layer=(2, 3, 3)),),
        parallelism=(Parallelism(tensor=2, data=2),) * 4,
    )
    for granularity, tolerance in (("domain", 1e-6), ("gpu", 2e-3)):
        made = PlacementCase(
            topology=replace(topology, domains=domains),
            workload=case.workload,
            plan=chosen,
            granularity=granularity,
        )
        traces = build_traces(made)
        found, predicted = measured(made, traces, engine(made, traces)), predict(made)

        assert found.makespan_s == pytest.approx(predicted.makespan_s, rel=tolerance)
        assert found.exposed_s == pytest.approx(
            predicted.exposed_s, abs=10 * tolerance * found.makespan_s
        )
        assert found.communication_bytes == pytest.approx(predicted.communication_bytes, rel=1e-3)


def test_corrections_change_the_prediction():
    """At half the speed on free links passes, and so waiting for them, take twice as long."""
    case = in_a_row(0, 1, 2)
    links = tuple(
        replace(link, bandwidth_bytes_per_s=1e300, latency_s=0.0) for link in case.topology.links
    )
    case = replace(case, topology=replace(case.topology, links=links))
    once, twice = predict(case), predict(case, Corrections(compute_time_factor=2.0))

    assert twice.makespan_s == pytest.approx(2.0 * once.makespan_s)
    assert twice.exposed_s == pytest.approx([2.0 * each for each in once.exposed_s])
    assert twice.communication_bytes == once.communication_bytes
