"""Epochs of any placements, and changes of placement, one environment after the other."""

from typing import Any

import numpy as np

from des.base.jit import kernel
from des.compiled.kernels.general import run_program
from des.compiled.kernels.program import OK, ProgramArrays, State
from des.compiled.many.layout import Epochs, Outcome, Runs, Small, Whole


@kernel
def run_programs(program: ProgramArrays, state: State, rows: Whole, epochs: Epochs) -> int:
    """Simulate epochs of placements that have as many stages as the program.

    What the program has of a placement and of links is overwritten. Epochs begin at the outcome's
    ``duration_s`` and end there. Returns the first row whose run does not end well, -1 if all do.
    """
    outcome = epochs.outcome
    num_visits = np.zeros(epochs.work.rate_flops_per_s.size, np.int64)
    for row in rows:
        fill_links(program, row, epochs)
        fill_stages(program, row, epochs, num_visits)
        if run_program(program, state) != OK:
            return int(row)
        outcome.busy_s[row] = outcome.num_bytes[row] = 0.0
        for _ in range(epochs.num_iterations):  # what stands still takes the same time again
            add_iteration(program, state, row, outcome)
    return -1


@kernel
def add_iteration(program: ProgramArrays, state: State, row: int, outcome: Outcome) -> None:
    """Add what an iteration has taken and sent to the sums over the epoch."""
    busy_s, num_bytes = 0.0, 0.0
    for stage in range(program.header[0].num_stages):
        busy_s += state.stages[stage].busy_s
    for link in range(program.header[0].num_links):
        num_bytes += state.links[link].num_bytes
    outcome.duration_s[row] += state.outcome[0].end_s
    outcome.busy_s[row] += busy_s
    outcome.num_bytes[row] += num_bytes


@kernel
def run_migrations(
    program: ProgramArrays,
    state: State,
    rows: Whole,
    last: Runs,
    epochs: Epochs,
    restart_s: float,
    pays_bytes: bool,
) -> int:
    """Let epochs begin with the change from the last placement, see `des.program.moves`.

    Returns the first row whose run does not end well, -1 if all do.
    """
    runs, outcome = epochs.runs, epochs.outcome
    for row in rows:
        outcome.migration_s[row] = outcome.moved_bytes[row] = 0.0
        if are_equal(last, runs, row):
            continue
        outcome.migration_s[row] = restart_s
        if not pays_bytes:
            continue
        outcome.moved_bytes[row] = fill_moves(program, last, row, epochs)
        fill_links(program, row, epochs)
        if run_program(program, state) != OK:
            return int(row)
        outcome.migration_s[row] = state.outcome[0].end_s + restart_s
    return -1


@kernel
def are_equal(some: Runs, others: Runs, row: int) -> bool:
    """Whether two placements are the same."""
    count = some.num_stages[row]
    if others.num_stages[row] != count:
        return False
    for stage in range(count):
        if some.domain[row, stage] != others.domain[row, stage]:
            return False
        if some.end_layer[row, stage] != others.end_layer[row, stage]:
            return False
    return True


@kernel
def fill_moves(program: ProgramArrays, last: Runs, row: int, epochs: Epochs) -> float:
    """Write down a message for every layer that goes elsewhere; returns their bytes."""
    runs, work, links = epochs.runs, epochs.work, epochs.links
    old_domains, old_end_layers = last.domain, last.end_layer
    new_domains, new_end_layers = runs.domain, runs.end_layer
    flows, header = program.flows, program.header[0]
    num_parameters, num_domains = work.num_parameters, work.rate_flops_per_s.size
    route_start = links.route_start
    old_stage, new_stage, num_moves = 0, 0, 0
    moved_bytes = 0.0
    for layer in range(num_parameters.size):
        if layer == old_end_layers[row, old_stage]:
            old_stage += 1
        if layer == new_end_layers[row, new_stage]:
            new_stage += 1
        source, target = old_domains[row, old_stage], new_domains[row, new_stage]
        if source != target:
            num_bytes = work.bytes_per_parameter * num_parameters[layer]
            flows[num_moves].num_bytes = num_bytes
            lay_flow(flows[num_moves], route_start, num_domains, source, target)
            moved_bytes += num_bytes
            num_moves += 1
    header.num_initial = header.num_messages = num_moves
    return moved_bytes


@kernel
def fill_links(program: ProgramArrays, row: int, epochs: Epochs) -> None:
    """Write down the links of an environment, corrected as `des.costs.message_times.corrected`
    does it.
    """
    links, figures = epochs.links, epochs.figures
    back, found = links.back, program.links
    bandwidths_bytes_per_s, latencies_s = figures.bandwidth_bytes_per_s, figures.latency_s
    bandwidth_factor, latency_factor = links.wan_bandwidth_factor, links.wan_latency_factor
    origin = row if latencies_s.shape[0] > 1 else 0
    for link in range(back.size):
        latency_s = latencies_s[origin, link]
        round_trip_s = latency_s + latencies_s[origin, link if back[link] < 0 else back[link]]
        record = found[link]
        record.bandwidth_bytes_per_s = bandwidths_bytes_per_s[origin, link] * bandwidth_factor
        record.latency_s = latency_s * latency_factor
        record.round_trip_s = round_trip_s * latency_factor


@kernel
def fill_stages(program: ProgramArrays, row: int, epochs: Epochs, num_visits: Whole) -> None:
    """Write down the devices, durations and routes of a placement; a device is a domain."""
    runs, work, links = epochs.runs, epochs.work, epochs.links
    domains, end_layers = runs.domain, runs.end_layer
    sums_before, rates, route_start = work.sums_before, work.rate_flops_per_s, links.route_start
    workers, durations_s, flows = program.workers, program.durations_s, program.flows
    num_stages, num_domains = runs.num_stages[row], rates.size
    num_visits[:] = 0
    for stage in range(num_stages):
        num_visits[domains[row, stage]] += 1
    begin, before = 0, 0
    for stage in range(num_stages):
        domain, end = domains[row, stage], end_layers[row, stage]
        workers[stage].device = domain
        workers[stage].is_alone = num_visits[domain] == 1
        for kind in range(4):
            flops = sums_before[end, kind] - sums_before[begin, kind]
            durations_s[4 * stage + kind].s = flops / rates[domain]
        if stage > 0:
            lay_flow(flows[2 * stage], route_start, num_domains, before, domain)
            lay_flow(flows[2 * stage - 1], route_start, num_domains, domain, before)
        begin, before = end, domain


@kernel
def lay_flow(flow: Any, route_start: Small, num_domains: int, source: int, target: int) -> None:
    """Write down the way from one domain to another; the hops are those of the links."""
    pair = source * num_domains + target
    flow.first_hop = route_start[pair]
    flow.num_hops = route_start[pair + 1] - route_start[pair]
    flow.endpoint = source
