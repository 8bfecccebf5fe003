"""Roofline model of computations, and statistics of a finished rank.

How long it computed and communicated, and the lines about it.
"""

import math
from collections.abc import Iterable, Sequence

from astra_sim.core.events import Log
from astra_sim.core.result import NodeSpan, RankResult, RankStatistics, RooflineStatistics
from astra_sim.files.errors import NodeError
from astra_sim.files.execution_trace import NodeType, TraceNode
from astra_sim.files.system_config import SystemConfig
from astra_sim.files.units import BYTES_PER_GB, FLOPS_PER_TFLOPS, NS_PER_S

NOT_A_NUMBER_NS = 2**63
"""Time that the original gives to 0 operations at no speed."""


def roofline(node: TraceNode, system: SystemConfig) -> tuple[float, float]:
    """Operational intensity [operations/byte] and attainable performance [operations/s].

    Raises
    ------
    NodeError
        If the node lacks ``num_ops`` or ``tensor_size``.

    References
    ----------
    .. [1] S. Williams, A. Waterman and D. Patterson, "Roofline", CACM 52(4), 2009.
    """
    intensity = node.unsigned64("num_ops") / node.unsigned64("tensor_size")
    memory_bytes_per_s = system.local_mem_bw_gb_per_s * BYTES_PER_GB
    peak = system.peak_perf_tflops * FLOPS_PER_TFLOPS
    return intensity, min(memory_bytes_per_s * intensity, peak)


def roofline_ns(node: TraceNode, system: SystemConfig) -> int | None:
    """Duration of a computation, None if it touches no byte and so ends at once. [ns]

    Without a peak or a memory bandwidth there is no speed; the original's outcome is kept: 0 ns,
    or 2**63 ns without operations.
    """
    num_operations = node.unsigned64("num_ops")
    if not node.unsigned64("tensor_size"):
        return None
    _, operations_per_s = roofline(node, system)
    if not operations_per_s:
        return 0 if num_operations else NOT_A_NUMBER_NS
    return int(num_operations / operations_per_s * NS_PER_S)


_COMMUNICATION = (NodeType.COMM_SEND, NodeType.COMM_RECV, NodeType.COMM_COLL)


def report_finish(
    *,
    rank: int,
    now_ns: int,
    exposed_ns: int,
    spans: Sequence[NodeSpan],
    system: SystemConfig,
    log: Log,
    finished: list[RankResult],
) -> None:
    """Print that a rank has finished, add it to ``finished``, then print its statistics.

    Raises
    ------
    NodeError
        If it ran a node that the statistics do not know; by then it is in ``finished``, without
        statistics.
    """
    log(
        "workload",
        "info",
        f"sys[{rank}] finished, {now_ns} cycles, exposed communication {exposed_ns} cycles.",
    )
    log("statistics", "info", f"sys[{rank}]. Post statistics processing start.")
    statistics = None
    try:
        statistics = rank_statistics(rank, spans, system)
    finally:
        finished.append(
            RankResult(
                rank=rank,
                finish_cycles=now_ns,
                exposed_communication_cycles=exposed_ns,
                statistics=statistics,
            )
        )
    log("statistics", "info", f"sys[{rank}]. Post statistics processing end.")
    for line in statistics_lines(statistics):
        log("statistics", "info", f"sys[{rank}], {line}")


def rank_statistics(rank: int, spans: Iterable[NodeSpan], system: SystemConfig) -> RankStatistics:
    """Reckon the statistics of a rank from the nodes that it ran.

    Raises
    ------
    NodeError
        If one of them is a computation on the CPU, a memory access or INVALID: the original has
        no place for those.
    """
    wall_ns = 0
    computing: list[NodeSpan] = []
    communicating: list[NodeSpan] = []
    computation = NodeType.COMP
    for span in spans:
        node = span.node
        if node.type == computation and not node.is_cpu:
            computing.append(span)
        elif node.type in _COMMUNICATION:
            communicating.append(span)
        else:
            raise NodeError(
                f"rank {rank}, node {node.id} {node.name!r}: statistics know messages, collectives "
                f"and computations off the CPU, got type {node.type} with is_cpu_op {node.is_cpu}"
            )
        if span.end_ns > wall_ns:  # noqa: PLR1730 - max() costs a call a node
            wall_ns = span.end_ns
    return RankStatistics(
        wall_ns=wall_ns,
        gpu_ns=covered_ns(computing) if computing else None,
        communication_ns=covered_ns(communicating) if communicating else None,
        roofline=_roofline_statistics(computing, system) if system.roofline_enabled else None,
    )


def covered_ns(spans: Iterable[NodeSpan]) -> int:
    """Time during which at least one of the spans lasts. [ns]"""
    total_ns = covered_until_ns = 0
    for start_ns, end_ns in sorted([span[1:] for span in spans]):
        if end_ns > covered_until_ns:
            total_ns += end_ns - (start_ns if start_ns > covered_until_ns else covered_until_ns)
            covered_until_ns = end_ns
    return total_ns


def statistics_lines(statistics: RankStatistics) -> list[str]:
    """Lines about a rank as the original words them, without its name."""
    lines = [f"Wall time: {statistics.wall_ns}"]
    if statistics.communication_ns is not None:
        lines.append(f"Comm time: {statistics.communication_ns}")
    if statistics.gpu_ns is not None:
        lines.append(f"GPU time: {statistics.gpu_ns}")
    if statistics.overlap_ns is not None:
        lines.append(f"Total compute-communication overlap: {statistics.overlap_ns}")
    roofline = statistics.roofline
    if roofline is not None:
        lines += [
            f"Compute bound percentage: {100 * roofline.compute_bound_fraction:.3f}%",
            f"Average compute utilization: {100 * roofline.compute_fraction:.3f}%",
            f"Average memory utilization: {100 * roofline.memory_fraction:.3f}%",
            f"Average operation intensity: {roofline.operations_per_byte:.3f}",
        ]
    return lines


def _roofline_statistics(
    computations: Sequence[NodeSpan], system: SystemConfig
) -> RooflineStatistics:
    """Means over the computations that were held against the roofline: none in a replay."""
    memory_bytes_per_s = system.local_mem_bw_gb_per_s * BYTES_PER_GB
    peak_flops = system.peak_perf_tflops * FLOPS_PER_TFLOPS
    totals = [0.0] * 4
    for span in () if system.replay_only else computations:
        duration_ns = span.end_ns - span.start_ns
        if duration_ns == 0:
            continue
        intensity, flops = roofline(span.node, system)
        shares = (
            float(flops >= peak_flops),
            _over(flops, peak_flops),
            _over(_over(flops, intensity), memory_bytes_per_s),
            intensity,
        )
        totals = [total + duration_ns * share for total, share in zip(totals, shares, strict=True)]
    weight_ns = 1 + sum(span.end_ns - span.start_ns for span in computations)
    bound, compute, memory, intensity = (total / weight_ns for total in totals)
    return RooflineStatistics(
        compute_bound_fraction=bound,
        compute_fraction=compute,
        memory_fraction=memory,
        operations_per_byte=intensity,
    )


def _over(dividend: float, divisor: float) -> float:
    """Quotient of floating-point numbers as IEEE 754 has it, by zero as well; both are >= 0."""
    if divisor:
        return dividend / divisor
    return math.inf if dividend else math.nan
