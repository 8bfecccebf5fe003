"""Sharing layers and replicas, against laws that hold for any world, workload and plan."""

import dataclasses
from collections import defaultdict

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sharing import FEW, parallel_cases
from strategies import (
    corrections,
)

from des import (
    NO_CORRECTIONS,
    IterationResult,
    Parallelism,
    Placement,
    Span,
    Topology,
    simulate,
)
from des.costs.bound_stages import bound_stages
from des.costs.stage_times import compute_rate_flops_per_s, stage_times_s
from des.plan.placement import device_numbers
from des.schedules import MESSAGE_OF


def in_time(result: IterationResult) -> list[Span]:
    """Passes of all workers, those of each device in order of execution."""
    return sorted(result.spans, key=lambda span: (span.start_s, span.end_s))


@settings(max_examples=examples(2 * FEW), deadline=None)
@given(case=parallel_cases(), found=corrections())
def test_every_pass_starts_as_soon_as_its_input_its_stage_and_its_device_allow(case, found):
    """Inputs within a device are there at once, within a domain they queue for a wire."""
    topology, workload, chosen = case
    result = simulate(topology, workload, chosen, found)
    stages = chosen.stages
    devices = device_numbers(stages)
    passes_s = stage_times_s(workload, bound_stages(topology, chosen), found)
    arrivals = defaultdict(float)
    for move in result.transfers:
        if move.kind != "G":
            receiver = (move.stage + (1 if move.kind == "F" else -1), *move[2:4])
            arrivals[receiver] = max(arrivals[receiver], move.arrival_s)
    stage_free_s, device_free_s, wire_free_s = (defaultdict(float) for _ in range(3))
    for span in in_time(result):
        own = stages[span.stage]
        start_s = max(stage_free_s[span.stage], device_free_s[devices[span.stage]])
        if span.kind in MESSAGE_OF:
            needs = (span.stage, MESSAGE_OF[span.kind], span.microbatch)
            start_s = max(start_s, arrivals[needs])
        assert span.start_s == start_s
        assert span.end_s == start_s + passes_s[span.stage][span.kind]
        stage_free_s[span.stage] = device_free_s[devices[span.stage]] = span.end_s
        if span.kind == "W":
            continue
        step = 1 if span.kind == "F" else -1
        after = span.stage + step
        if not 0 <= after < len(stages) or stages[after].domain != own.domain:
            continue
        arrival_s = span.end_s
        if stages[after].device != own.device:
            wire = devices[span.stage], devices[after]
            sharing = chosen.parallelism[own.domain]
            domain = topology.domains[own.domain]
            bandwidth = domain.intra_bandwidth_bytes_per_s * found.intra_bandwidth_factor
            bytes_s = workload.message_bytes / sharing.data / bandwidth
            wire_free_s[wire] = max(span.end_s, wire_free_s[wire]) + bytes_s
            latency_s = domain.intra_latency_s * found.intra_latency_factor
            arrival_s = wire_free_s[wire] + latency_s
        arrivals[after, MESSAGE_OF[span.kind], span.microbatch] = arrival_s


@settings(max_examples=examples(FEW), deadline=None)
@given(case=parallel_cases(), step=st.integers(0, 3))
def test_time_and_work_are_conserved(case, step):
    """No device does two things at once; the passes of all replicas are the work of the model."""
    topology, workload, chosen = case
    result = simulate(topology, workload, chosen, step=step)

    busy_s, last_end_s = defaultdict(float), defaultdict(float)
    done = 0.0
    stages = chosen.stages
    rates = [
        compute_rate_flops_per_s(
            topology.domains[stage.domain], NO_CORRECTIONS, chosen.parallelism_of(stage.domain)
        )
        for stage in stages
    ]
    silent = stage_times_s(
        workload, bound_stages(topology, chosen), NO_CORRECTIONS, with_exchanges=False
    )
    for span in in_time(result):
        device = result.stages[span.stage].domain, result.stages[span.stage].device
        assert span.start_s >= last_end_s[device]
        last_end_s[device] = span.end_s
        busy_s[device] += span.end_s - span.start_s
        done += silent[span.stage][span.kind] * rates[span.stage]
    recomputed = sum(layer.recomputation_flops for layer in workload.layers)
    expected = workload.flops_per_iteration + workload.num_microbatches * recomputed
    assert done == pytest.approx(expected)
    for stage in result.stages:
        assert stage.busy_s + stage.idle_s == pytest.approx(result.makespan_s)
    longest_s = max([*busy_s.values(), *(link.busy_s for link in result.links)])
    assert result.makespan_s >= longest_s * (1 - 1e-9)
    num_used = len(busy_s)
    assert result.bubble_fraction == pytest.approx(
        1 - sum(busy_s.values()) / (num_used * result.makespan_s)
    )


@settings(max_examples=examples(FEW), deadline=None)
@given(case=parallel_cases(), found=corrections())
def test_domains_of_one_gpu_need_no_parallelism(case, found):
    """The very same result, replicas included."""
    topology, workload, chosen = case
    topology = dataclasses.replace(
        topology,
        domains=tuple(dataclasses.replace(domain, num_gpus=1) for domain in topology.domains),
    )
    results = [
        simulate(topology, workload, dataclasses.replace(chosen, parallelism=shared), found)
        for shared in ((), (Parallelism(),) * topology.num_domains)
    ]
    assert results[0] == results[1]


@settings(max_examples=examples(FEW), deadline=None)
@given(case=parallel_cases(fully=True), draw=st.data())
def test_names_and_order_of_domains_do_not_matter(case, draw):
    """Every pass starts and ends at the very same float, and so does every sum of gradients."""
    topology, workload, chosen = case
    count = topology.num_domains
    new_place = draw.draw(st.permutations(range(count)))
    new_name = {f"domain{old}": f"site {new}" for old, new in enumerate(new_place)}
    old_place = [new_place.index(new) for new in range(count)]
    renamed = [dataclasses.replace(each, name=new_name[each.name]) for each in topology.domains]
    moved = Topology.of(
        [renamed[old] for old in old_place],
        [
            dataclasses.replace(link, source=new_name[link.source], target=new_name[link.target])
            for link in topology.links
        ],
    )

    def elsewhere(placement):
        return Placement(domain_of_layer=tuple(new_place[d] for d in placement.domain_of_layer))

    moved_plan = dataclasses.replace(
        chosen,
        placement=elsewhere(chosen.placement),
        replicas=tuple(map(elsewhere, chosen.replicas)),
        parallelism=tuple(chosen.parallelism[old] for old in old_place if chosen.parallelism),
    )
    before, after = simulate(topology, workload, chosen), simulate(moved, workload, moved_plan)
    assert after.spans == before.spans
    assert after.makespan_s == before.makespan_s
    old_link = [
        topology.link_index[old_place[source], old_place[target]]
        for source, target in moved.link_index
    ]
    found = sorted(
        (move._replace(link=old_link[move.link]) for move in after.transfers),
        key=lambda move: move.link,  # stable: of each link as they came
    )
    assert found == list(before.transfers)


@settings(max_examples=examples(FEW), deadline=None)
@given(case=parallel_cases(), found=corrections(), step=st.integers(0, 3))
def test_the_same_inputs_give_the_same_result(case, found, step):
    assert simulate(*case, found, step=step) == simulate(*case, found, step=step)


@settings(max_examples=examples(FEW), deadline=None)
@given(case=parallel_cases(), found=corrections(), step=st.integers(0, 3))
def test_factors_on_links_inside_domains_are_those_links(case, found, step):
    """The very same result as of a world whose domains have these links, gradients included."""
    topology, workload, chosen = case
    inner = {"intra_bandwidth_factor": 1.0, "intra_latency_factor": 1.0}
    other_links = dataclasses.replace(
        topology,
        domains=tuple(
            dataclasses.replace(
                domain,
                intra_bandwidth_bytes_per_s=(
                    domain.intra_bandwidth_bytes_per_s * found.intra_bandwidth_factor
                ),
                intra_latency_s=domain.intra_latency_s * found.intra_latency_factor,
            )
            for domain in topology.domains
        ),
    )

    corrected = simulate(topology, workload, chosen, found, step=step)
    other = simulate(other_links, workload, chosen, dataclasses.replace(found, **inner), step=step)
    assert corrected == other
