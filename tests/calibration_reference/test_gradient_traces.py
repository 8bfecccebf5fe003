"""Sums of gradients and of tensor parallelism in execution traces."""

from dataclasses import replace

from hand_traces import case, on_gpus, without_queues

from astra_sim.files.execution_trace import CollectiveType, NodeType, TraceNode
from calibration.cases.case import PlacementCase
from calibration.reference.chakra_trace import TraceSet, build_traces
from des import GradientExchange, Parallelism, Placement, Transport
from des.plan.buckets import buckets_of


def collectives(traces: TraceSet, rank: int) -> list[TraceNode]:
    return [node for node in traces.traces[rank].nodes if node.type == NodeType.COMM_COLL]


def test_tensor_ranks_sum_up_after_each_pass_but_not_after_weight_gradients():
    """Two layers: F and B sum up 2 x 2 x 20 bytes in one collective, or 20 bytes four times."""
    made = on_gpus(0, 0, 1, 1, parallelism=Parallelism(tensor=2, data=2))
    made = replace(made, plan=replace(made.plan, exchange=GradientExchange()))
    for tensor_sums, sizes in (("pass", [40] * 2), ("layer", [10] * 8)):
        traces = build_traces(made, tensor_sums=tensor_sums)
        sums = [node for node in collectives(traces, 1) if "tensor" in node.name]

        assert [node.unsigned64("comm_size") for node in sums] == sizes
        assert {traces.groups[int(node.text("pg_name"))] for node in sums} == {(0, 1)}
        assert {node.unsigned64("comm_type") for node in sums} == {CollectiveType.ALL_REDUCE}

    halved = replace(made, plan=replace(made.plan, schedule="zb_h1"))
    names = [node.name for node in collectives(build_traces(halved), 1) if "tensor" in node.name]
    assert [name.split()[2][0] for name in names] == ["F", "D"]


def test_replicas_in_a_device_sum_up_their_gradients_by_tensor_rank():
    traces = build_traces(on_gpus(0, 0, 1, 1, parallelism=Parallelism(tensor=2, data=2)))
    (node,) = (node for node in collectives(traces, 3) if "gradient" in node.name)

    # two layers of a parameter each, halved over the tensor ranks, 2 bytes of gradient each
    assert node.name == "sum of gradient bucket 0 in the domain"
    assert node.unsigned64("comm_size") == 2
    assert traces.groups[int(node.text("pg_name"))] == (1, 3)


def test_replicas_on_domains_sum_up_in_rings_of_equal_place():
    """Reduce inside, sum up over domains, gather inside; a pass is cut where it makes a bucket."""
    made = on_gpus(0, 0, 0, 0, parallelism=Parallelism(tensor=2, data=2))
    layers = tuple(replace(layer, num_parameters=1000.0) for layer in made.workload.layers)
    made = replace(
        made,
        workload=replace(made.workload, num_microbatches=2, layers=layers),
        plan=replace(
            made.plan,
            replicas=(Placement(domain_of_layer=(2,) * 4),),
            exchange=GradientExchange(bucket_bytes=4000.0),
        ),
    )
    traces = build_traces(made)
    exchanges = [node for node in collectives(traces, 1) if "gradient" in node.name]

    assert [node.unsigned64("comm_type") for node in exchanges] == [
        CollectiveType.REDUCE_SCATTER,
        CollectiveType.ALL_REDUCE,
        CollectiveType.ALL_GATHER,
    ] * 2
    assert [node.unsigned64("comm_size") for node in exchanges] == [2000, 1000, 1000] * 2
    assert [traces.groups[int(node.text("pg_name"))] for node in exchanges[:3]] == [
        (1, 3),
        (1, 9),
        (1, 3),
    ]
    halves = [node for node in traces.traces[1].nodes if node.name == "B0 of stage 0"]
    assert len(halves) == 2
    assert halves[0].id in exchanges[0].dependencies


def in_two_buckets(made: PlacementCase) -> PlacementCase:
    """The same in two replicas, on the first two domains, which sum up in two buckets."""
    layers = tuple(replace(layer, num_parameters=1000.0) for layer in made.workload.layers)
    return replace(
        made,
        workload=replace(made.workload, num_microbatches=2, layers=layers),
        plan=replace(
            made.plan,
            replicas=(Placement(domain_of_layer=(1, 1)),),
            exchange=GradientExchange(bucket_bytes=2000.0),
        ),
    )


def test_exchanges_come_in_turn_where_an_npu_has_one_slot():
    """Two buckets of the same domains: one by one, else side by side, whether they queue or not."""
    made = in_two_buckets(case(0, 0))
    alone = replace(
        made,
        topology=replace(made.topology, transport=Transport(endpoints="one_in_flight")),
    )
    for traces, is_in_turn in (
        (build_traces(made), False),
        (build_traces(without_queues(made)), False),
        (build_traces(alone), True),
    ):
        first, second = collectives(traces, 0)
        assert (first.id in second.dependencies) is is_in_turn


def test_sums_inside_a_domain_come_in_turn_where_they_would_not_see_each_other():
    """Two buckets of two replicas in each of two domains: reduce, sum up between, gather.

    Where messages queue the links inside see to the order. Else the second reduction waits for the
    first, and the second gathering; sums between domains have each the links to themselves.
    """
    made = in_two_buckets(on_gpus(0, 0, parallelism=Parallelism(data=2)))
    kinds = ["reduction", "sum", "gathering"]
    for case_made, in_turn in ((made, []), (without_queues(made), [0, 2])):
        found = collectives(build_traces(case_made), 0)
        first, second = found[:3], found[3:]
        assert [node.name.split()[0] for node in first] == kinds
        assert [node.name.split()[0] for node in second] == kinds
        waits = [one.id in other.dependencies for one, other in zip(first, second, strict=True)]
        assert [position for position, wait in enumerate(waits) if wait] == in_turn


def test_sums_inside_a_domain_come_in_the_order_in_which_gradients_are_made():
    """A holds the first stage and the last one, whose gradients are made first."""
    made = without_queues(on_gpus(0, 1, 0, parallelism=Parallelism(data=2)))
    layers = tuple(replace(layer, num_parameters=1000.0) for layer in made.workload.layers)
    made = replace(made, workload=replace(made.workload, layers=layers))

    numbers = [bucket.stages for bucket in buckets_of(made.workload, made.plan, 0)]
    sums = {node.name.split(" bucket ")[1]: node for node in collectives(build_traces(made), 0)}
    first, last = (sums[f"{numbers.index((stage,))} in the domain"] for stage in (0, 2))
    assert last.id in first.dependencies
    assert first.id not in last.dependencies
