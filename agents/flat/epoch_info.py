"""Cycles, bytes and network of an epoch, in the same terms whichever simulator has judged it."""

from agents.decision.simulator import CYCLES_PER_S
from agents.flat.measured_epoch import MEASURED_BYTES, MeasuredEpoch, exposed_cycles, sent_bytes
from agents.flat.worlds import path_matrices
from des import EpochResult, IterationResult, Topology
from des.program.program import Program


def epoch_info(
    topology: Topology, program: Program, epoch: EpochResult | MeasuredEpoch
) -> dict[str, object]:
    """Figures of one iteration of an epoch, its change of placement left out.

    Computing and communicating cycles are sums over the domains in use; a domain communicates
    until its last pass or message has ended, wherever it does not compute. Bytes of communication
    count on every link of their route, those that cross domains once. The network is that of the
    epoch, from which ``astra-unaware`` and ``astra-aware`` make one kind of link.
    """
    if isinstance(epoch, MeasuredEpoch):
        makespan_s = epoch.measured.makespan_s
        computing_s, waiting_cycles = epoch.computing_s, exposed_cycles(epoch.measured)
    else:
        last = epoch.iterations[-1]
        makespan_s, computing_s = last.makespan_s, sum(stage.busy_s for stage in last.stages)
        waiting_cycles = CYCLES_PER_S * (sum(_ends_s(last).values()) - computing_s)
    bandwidth, latency = path_matrices(topology.at_start())
    hops_bytes, crossing_bytes = sent_bytes(program)
    return {
        "total_cycles": CYCLES_PER_S * makespan_s,
        "compute_cycles": CYCLES_PER_S * computing_s,
        "communication_cycles": waiting_cycles,
        MEASURED_BYTES: hops_bytes,
        "communication_gb": hops_bytes / 1e9,
        "cross_domain_bytes": crossing_bytes,
        "network_bandwidth_bytes_per_s": bandwidth.tolist(),
        "network_latency_s": latency.tolist(),
    }


def _ends_s(result: IterationResult) -> dict[str, float]:
    """Time at which each domain in use ends its last pass or message. [s]"""
    found = dict.fromkeys((stage.domain for stage in result.stages), 0.0)
    for span in result.spans:
        domain = result.stages[span.stage].domain
        found[domain] = max(found[domain], span.end_s)
    for transfer in result.transfers:
        link = result.links[transfer.link]
        for domain in {link.source, link.target} & found.keys():
            found[domain] = max(found[domain], transfer.arrival_s)
    return found
