"""Epochs of placements whose course is foreseeable, a lane each; see
`des.compiled.kernels.recurrence`.
"""

import numpy as np

from des.base.arithmetic import goodput
from des.base.jit import kernel
from des.compiled.kernels.intrinsics import LANES
from des.compiled.kernels.lanes import LATENCY, STAGE_BUSY, WIRE_TIME, Lanes, Record
from des.compiled.kernels.recurrence import run_lanes
from des.compiled.many.layout import Epochs, RowGroups, Tables, Whole


@kernel
def run_foreseeable(
    lanes: Lanes, record: Record, tables: Tables, groups: RowGroups, epochs: Epochs
) -> None:
    """Simulate the epochs of foreseeable groups, those of ``n`` stages in group ``n - 1``.

    They begin at the outcome's ``duration_s`` and end there.
    """
    ordered, starts = groups.ordered, groups.starts
    for num_stages in range(1, tables.first_row.size - 1):
        rows = tables.rows[tables.first_row[num_stages] : tables.first_row[num_stages + 1]]
        for begin in range(starts[num_stages - 1], starts[num_stages], LANES):
            block = ordered[begin : min(begin + LANES, starts[num_stages])]
            fill_lanes(lanes, block, epochs)
            run_lanes(lanes, rows, num_stages, record)
            add_iterations(lanes, block, num_stages, tables.num_bytes[num_stages], epochs)


@kernel
def add_iterations(
    lanes: Lanes, block: Whole, num_stages: int, num_bytes: float, epochs: Epochs
) -> None:
    """Write the sums over epochs; what stands still takes the same time again."""
    outcome = epochs.outcome
    for lane in range(block.size):
        row = block[lane]
        own_busy_s = 0.0
        for stage in range(num_stages):
            own_busy_s += lanes.stages[stage, STAGE_BUSY, lane]
        busy_s, sent_bytes, duration_s = 0.0, 0.0, outcome.duration_s[row]
        for _ in range(epochs.num_iterations):
            busy_s += own_busy_s
            sent_bytes += num_bytes
            duration_s += lanes.makespan_s[0, lane]
        outcome.busy_s[row], outcome.num_bytes[row] = busy_s, sent_bytes
        outcome.duration_s[row] = duration_s


@kernel
def fill_lanes(lanes: Lanes, block: Whole, epochs: Epochs) -> None:
    """Write down the stages and wires of placements, one per lane; spare lanes repeat the last."""
    stages, wires = lanes.stages, lanes.wires
    stage_count, domains, end_layers = epochs.runs
    work, links = epochs.work, epochs.links
    sums_before, rates = work.sums_before, work.rate_flops_per_s
    route_start, hops, back = links.route_start, links.hops, links.back
    bandwidths, latencies = epochs.figures.bandwidth_bytes_per_s, epochs.figures.latency_s
    has_rows, num_domains = latencies.shape[0] > 1, rates.size
    for lane in range(LANES):
        row = block[min(lane, block.size - 1)]
        origin = row if has_rows else 0
        begin, before = 0, 0
        for stage in range(stage_count[row]):
            domain, end = domains[row, stage], end_layers[row, stage]
            for kind in range(4):
                flops = sums_before[end, kind] - sums_before[begin, kind]
                stages[stage, kind, lane] = flops / rates[domain]
            for way in range(2 if stage > 0 else 0):
                source, target = (before, domain) if way == 0 else (domain, before)
                link = hops[route_start[source * num_domains + target]]
                latency_s = latencies[origin, link]
                rate = bandwidths[origin, link] * links.wan_bandwidth_factor
                if links.window_bytes < np.inf:
                    round_trip_s = latency_s + latencies[origin, back[link]]
                    round_trip_s *= links.wan_latency_factor
                    rate = goodput(rate, round_trip_s, links.window_bytes)
                wire = 2 * (stage - 1) + way
                wires[wire, WIRE_TIME, lane] = work.message_bytes / rate
                wires[wire, LATENCY, lane] = latency_s * links.wan_latency_factor
            begin, before = end, domain
