"""The simulator against laws that hold for any world, workload and plan."""

import dataclasses
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from examples import examples
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from law_strategies import movements
from message_times import arrived_s
from strategies import STATIC_SCHEDULES, cases, corrections, free_world, plan, unit_workload

from des import (
    NO_CORRECTIONS,
    Corrections,
    Movement,
    Operation,
    Placement,
    Topology,
    UniformLaw,
    simulate,
)
from des.costs.bound_stages import bound_stages
from des.costs.stage_times import stage_times_s
from des.schedules import MESSAGE_OF, stage_orders

# A certificate: each start is the latest of what it waits for, and nothing waits for longer.


@settings(max_examples=examples(150), deadline=None)
@given(case=cases(), movement=st.none() | movements(), found=corrections())
def test_every_pass_starts_as_soon_as_its_input_its_stage_and_its_domain_allow(
    case, movement, found
):
    topology, workload, chosen = case
    result = simulate(dataclasses.replace(topology, movement=movement), workload, chosen, found)
    stages = chosen.placement.stages
    passes_s = stage_times_s(workload, bound_stages(topology, chosen), found)
    arrivals = {
        (stage + (1 if kind == "F" else -1), kind, microbatch): time_s
        for (stage, kind, microbatch), time_s in arrived_s(result).items()
    }
    stage_free_s, domain_free_s, last_asked_s = (defaultdict(float) for _ in range(3))
    done = defaultdict(list)
    asked = []
    for span in result.spans:  # stage by stage, in order of execution
        needs = (span.stage, MESSAGE_OF.get(span.kind), span.microbatch)
        asked.append(max(stage_free_s[span.stage], arrivals.get(needs, 0.0)))
        stage_free_s[span.stage] = span.end_s
        done[span.stage].append(Operation(span.kind, span.microbatch, span.stage))
    in_time = [
        (span.start_s, span.end_s, asked_s, number)
        for number, (span, asked_s) in enumerate(zip(result.spans, asked, strict=True))
    ]
    for _, _, asked_s, number in sorted(in_time):
        span = result.spans[number]
        domain = stages[span.stage].domain
        assert span.start_s == max(asked_s, domain_free_s[domain])
        assert span.end_s == span.start_s + passes_s[span.stage][span.kind]
        assert asked_s >= last_asked_s[domain] * (1 - 1e-12)  # first come, first served
        last_asked_s[domain] = asked_s
        domain_free_s[domain] = span.end_s
    orders = stage_orders(chosen.schedule, len(stages), workload.num_microbatches)
    assert [tuple(done[stage]) for stage in range(len(stages))] == list(orders)


@given(case=cases(), movement=st.none() | movements())
def test_time_bytes_and_flops_are_conserved(case, movement):
    topology, workload, chosen = case
    topology = dataclasses.replace(topology, movement=movement)
    result = simulate(topology, workload, chosen)

    for stage in result.stages:
        assert stage.busy_s + stage.idle_s == pytest.approx(result.makespan_s)
    flops = result.utilisation * topology.peak_flops_per_s * result.makespan_s
    assert flops == pytest.approx(workload.flops_per_iteration)
    domains = [stage.domain for stage in chosen.placement.stages]
    hops = sum(
        len(topology.route(*ends))
        for here, there in pairwise(domains)
        for ends in ((here, there), (there, here))
    )
    assert sum(link.num_messages for link in result.links) == hops * workload.num_microbatches
    carried = hops * workload.num_microbatches * workload.message_bytes
    assert result.communication_cost_bytes == pytest.approx(carried)


@given(case=cases(), movement=st.none() | movements())
def test_no_domain_does_two_things_at_once(case, movement):
    topology, workload, chosen = case
    topology = dataclasses.replace(topology, movement=movement)
    result = simulate(topology, workload, chosen)

    busy_s = defaultdict(float)
    last_end_s = defaultdict(float)
    for span in sorted(result.spans, key=lambda span: (span.start_s, span.end_s)):
        domain = result.stages[span.stage].domain
        assert span.start_s >= last_end_s[domain]
        last_end_s[domain] = span.end_s
        busy_s[domain] += span.end_s - span.start_s
    longest_s = max([*busy_s.values(), *(link.busy_s for link in result.links)])
    assert result.makespan_s >= longest_s * (1 - 1e-9)
    assert result.makespan_s == max(last_end_s.values())


@given(case=cases())
def test_no_stage_is_done_before_the_way_to_it_its_own_work_and_the_way_back(case):
    """A bound for any schedule: first input in, all passes, last gradient back to the start.

    Weight gradients that are passes of their own may come after the last gradient has left.
    """
    topology, workload, chosen = case
    result = simulate(topology, workload, chosen)

    stages = chosen.placement.stages
    passes_s = stage_times_s(workload, bound_stages(topology, chosen), NO_CORRECTIONS)
    way_s = 0.0
    backward = "D" if any(span.kind == "D" for span in result.spans) else "B"
    for index, times_s in enumerate(passes_s):
        own_s = workload.num_microbatches * (times_s["F"] + times_s[backward])
        assert result.makespan_s >= (way_s + own_s) * (1 - 1e-9)
        if index + 1 < len(stages):
            here, there = stages[index].domain, stages[index + 1].domain
            for hop in topology.route(here, there) + topology.route(there, here):
                link = topology.links[hop]
                way_s += workload.message_bytes / link.bandwidth_bytes_per_s + link.latency_s
            way_s += times_s["F"] + times_s["D"]


@given(case=cases(min_domains=2, fully=True, single_visit=True), movement=movements(outages=False))
def test_a_moving_network_is_no_better_than_its_best_and_no_worse_than_its_worst(case, movement):
    """Without shared domains more delay never helps."""
    topology, workload, chosen = case
    extremes = np.array([movement.law.extremes(link) for link in topology.links])
    least_bandwidth, most_bandwidth, least_latency, most_latency = extremes.T
    best = topology.scaled(most_bandwidth, least_latency)
    worst = topology.scaled(least_bandwidth, most_latency)

    moving = dataclasses.replace(topology, movement=movement)
    makespan_s = simulate(moving, workload, chosen).makespan_s
    assert makespan_s >= simulate(best, workload, chosen).makespan_s * (1 - 1e-9)
    assert makespan_s <= simulate(worst, workload, chosen).makespan_s * (1 + 1e-9)


# Invariances.


@given(case=cases(), movement=st.none() | movements(), found=corrections())
def test_the_same_inputs_give_the_same_result(case, movement, found):
    topology, workload, chosen = case
    topology = dataclasses.replace(topology, movement=movement)

    assert simulate(topology, workload, chosen, found) == simulate(
        topology, workload, chosen, found
    )


@given(case=cases(fully=True), draw=st.data())
def test_names_and_order_of_domains_do_not_matter(case, draw):
    """Every pass starts and ends at the very same float."""
    topology, workload, chosen = case
    count = topology.num_domains
    new_place = draw.draw(st.permutations(range(count)))
    new_name = {f"domain{old}": f"site {new}" for old, new in enumerate(new_place)}
    renamed = [dataclasses.replace(d, name=new_name[d.name]) for d in topology.domains]
    moved = Topology.of(
        [renamed[new_place.index(new)] for new in range(count)],
        [
            dataclasses.replace(link, source=new_name[link.source], target=new_name[link.target])
            for link in topology.links
        ],
    )
    placement = Placement(
        domain_of_layer=tuple(new_place[domain] for domain in chosen.placement.domain_of_layer)
    )

    before = simulate(topology, workload, chosen)
    after = simulate(moved, workload, dataclasses.replace(chosen, placement=placement))
    assert after.spans == before.spans
    assert after.makespan_s == before.makespan_s
    assert [dataclasses.replace(stage, domain="") for stage in after.stages] == [
        dataclasses.replace(stage, domain="") for stage in before.stages
    ]


# No shrinking: the wire has the same test, which shows the smallest case.
@settings(max_examples=examples(150), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(case=cases(min_domains=2), seed=st.integers(0, 2**32), interval_s=st.floats(0.01, 10.0))
def test_links_that_move_by_nothing_are_steady(case, seed, interval_s):
    """Exactly: where a sum is rounded otherwise, stages that share a domain may change turns."""
    topology, workload, chosen = case
    law = UniformLaw(bandwidth_fluctuation=0.0, latency_jitter=0.0, update_interval_s=interval_s)
    moving = dataclasses.replace(topology, movement=Movement(law=law, seed=seed))

    assert simulate(moving, workload, chosen).spans == simulate(topology, workload, chosen).spans


@given(case=cases(min_domains=2), found=corrections())
def test_correcting_links_equals_scaling_the_world(case, found):
    topology, workload, chosen = case
    found = dataclasses.replace(found, compute_time_factor=1.0, message_overhead_s=0.0)
    count = len(topology.links)
    scaled = topology.scaled(
        np.full(count, found.wan_bandwidth_factor), np.full(count, found.wan_latency_factor)
    )

    assert simulate(topology, workload, chosen, found) == simulate(scaled, workload, chosen)


@pytest.mark.parametrize("schedule", STATIC_SCHEDULES)
@given(
    num_microbatches=st.integers(1, 8),
    passes_s=st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.1, 9)), min_size=1, max_size=6),
)
def test_twice_the_compute_time_doubles_the_makespan_on_free_links(
    schedule, num_microbatches, passes_s
):
    workload = unit_workload(passes_s, num_microbatches=num_microbatches)
    chosen = plan(*range(len(passes_s)), schedule=schedule)
    topology = free_world(len(passes_s))

    once = simulate(topology, workload, chosen)
    twice = simulate(topology, workload, chosen, Corrections(compute_time_factor=2.0))
    assert twice.makespan_s == 2 * once.makespan_s


@given(case=cases())
def test_no_corrections_correct_nothing(case):
    assert simulate(*case, Corrections()) == simulate(*case)


@given(case=cases(min_domains=2, fully=True, single_visit=True), draw=st.data())
def test_a_better_link_never_hurts_where_no_domain_is_shared(case, draw):
    topology, workload, chosen = case
    index = draw.draw(st.integers(0, len(topology.links) - 1))
    bandwidth_factors, latency_factors = np.ones((2, len(topology.links)))
    bandwidth_factors[index], latency_factors[index] = 2.0, 0.5

    better = topology.scaled(bandwidth_factors, latency_factors)
    after_s = simulate(better, workload, chosen).makespan_s
    assert after_s <= simulate(topology, workload, chosen).makespan_s * (1 + 1e-12)
