"""Epochs of placements whose course is foreseeable, a lane each; see
`des.compiled.kernels.recurrence`.
"""

from des.base.jit import kernel
from des.compiled.kernels.intrinsics import LANES
from des.compiled.kernels.lanes import (
    BANDWIDTH,
    BASE_LATENCY,
    LINK,
    MAKESPAN,
    ROUND_TRIP,
    STAGE_BUSY,
    START,
    LaneRules,
    Lanes,
    Record,
)
from des.compiled.kernels.program import UNIFORM
from des.compiled.kernels.recurrence import run_lanes
from des.compiled.many.layout import Figures, Links, Outcome, Runs, Tables, Whole, Work


@kernel
def run_foreseeable(
    lanes: Lanes,
    rules: LaneRules,
    record: Record,
    tables: Tables,
    ordered: Whole,
    starts: Whole,
    seeds: Whole,
    runs: Runs,
    work: Work,
    links: Links,
    figures: Figures,
    num_iterations: int,
    outcome: Outcome,
) -> int:
    """Simulate epochs, those of ``n`` stages from ``ordered[starts[n - 1]]`` on.

    They begin at ``outcome.duration_s`` and end there. Returns a row whose run does not end well,
    -1 if all do.
    """
    is_moving = rules.weather == UNIFORM
    for num_stages in range(1, tables.first_row.size - 1):
        rows = tables.rows[tables.first_row[num_stages] : tables.first_row[num_stages + 1]]
        for begin in range(starts[num_stages - 1], starts[num_stages], LANES):
            block = ordered[begin : min(begin + LANES, starts[num_stages])]
            fill_lanes(lanes, block, seeds, runs, work, links, figures)
            begin_epochs(lanes, block, outcome)
            for iteration in range(num_iterations):
                if iteration == 0 or is_moving:  # what stands still takes the same time again
                    is_late = is_moving and latest_start_s(lanes) > work.latest_start_s
                    if is_late or run_lanes(lanes, rules, rows, num_stages, record) != 0:
                        return int(block[0])
                end_iterations(lanes, block, num_stages, tables.num_bytes[num_stages], outcome)
    return -1


@kernel
def begin_epochs(lanes: Lanes, block: Whole, outcome: Outcome) -> None:
    """Let iterations begin when placements have been changed; spare lanes begin as the last."""
    own, duration_s = lanes.own, outcome.duration_s
    busy_s, num_bytes = outcome.busy_s, outcome.num_bytes
    for lane in range(LANES):
        row = block[min(lane, block.size - 1)]
        own[START, lane] = duration_s[row]
        busy_s[row] = num_bytes[row] = 0.0


@kernel
def latest_start_s(lanes: Lanes) -> float:
    """Start of the last lane to begin. [s]"""
    latest_s = 0.0
    for lane in range(LANES):
        start_s = lanes.own[START, lane]
        latest_s = start_s if start_s > latest_s else latest_s
    return latest_s


@kernel
def end_iterations(
    lanes: Lanes, block: Whole, num_stages: int, num_bytes: float, outcome: Outcome
) -> None:
    """Add what iterations have taken to the sums over epochs; the next begin at their ends."""
    own, stages, duration_s = lanes.own, lanes.stages, outcome.duration_s
    busy_s, sent_bytes = outcome.busy_s, outcome.num_bytes
    for lane in range(block.size):
        row = block[lane]
        own_busy_s = 0.0
        for stage in range(num_stages):
            own_busy_s += stages[stage, STAGE_BUSY, lane]
        busy_s[row] += own_busy_s
        sent_bytes[row] += num_bytes
        duration_s[row] += own[MAKESPAN, lane]
    for lane in range(LANES):
        own[START, lane] = duration_s[block[min(lane, block.size - 1)]]


@kernel
def fill_lanes(
    lanes: Lanes,
    block: Whole,
    seeds: Whole,
    runs: Runs,
    work: Work,
    links: Links,
    figures: Figures,
) -> None:
    """Write down the stages and wires of placements, one per lane; spare lanes repeat the last."""
    stages, wires, seed_of_lane = lanes.stages, lanes.wires, lanes.seed
    stage_count, domains, end_layers = runs
    sums_before, rates = work.sums_before, work.rate_flops_per_s
    route_start, hops, back = links.route_start, links.hops, links.back
    bandwidths, latencies = figures.bandwidth_bytes_per_s, figures.latency_s
    has_rows, num_domains = latencies.shape[0] > 1, rates.size
    for lane in range(LANES):
        row = block[min(lane, block.size - 1)]
        seed_of_lane[lane] = seeds[row]
        origin = row if has_rows else 0
        begin, before = 0, 0
        for stage in range(stage_count[row]):
            domain, end = domains[row, stage], end_layers[row, stage]
            for kind in range(4):
                flops = sums_before[end, kind] - sums_before[begin, kind]
                stages[stage, kind, lane] = flops / rates[domain]
            if stage > 0:
                for way in range(2):
                    source, target = (before, domain) if way == 0 else (domain, before)
                    link = hops[route_start[source * num_domains + target]]
                    latency_s = latencies[origin, link]
                    round_trip_s = latency_s + latencies[origin, back[link]]
                    bandwidth = bandwidths[origin, link]
                    wire = 2 * (stage - 1) + way
                    wires[wire, BANDWIDTH, lane] = bandwidth * links.wan_bandwidth_factor
                    wires[wire, BASE_LATENCY, lane] = latency_s * links.wan_latency_factor
                    wires[wire, ROUND_TRIP, lane] = round_trip_s * links.wan_latency_factor
                    wires[wire, LINK, lane] = link
            begin, before = end, domain
