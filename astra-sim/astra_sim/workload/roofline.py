"""Roofline model: how fast a computation runs, bound by the peak or by the memory."""

from astra_sim.files.execution_trace import TraceNode
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
