"""An epoch as any backend judges it, in the same terms: its cycles, bytes and network."""

from dataclasses import dataclass
from functools import cached_property

from agents.decision.simulator import CYCLES_PER_S, Measured
from agents.flat.worlds import path_matrices
from des import EpochResult, IterationResult, Topology
from des.program.program import Program


@dataclass(frozen=True, kw_only=True)
class MeasuredEpoch:
    """The figures of `des.EpochResult`, with a communication cost in cycles.

    As links stand still within the epoch, one measurement stands for all its iterations. What it
    does not tell follows from the plan alone: memory, and how long devices compute.

    Attributes
    ----------
    migration_s
        Time for which the training stood still to change its plan. [s]
    moved_bytes
        Model state that was sent for it, however many links its routes have.
    """

    program: Program
    measured: Measured
    num_iterations: int
    migration_s: float
    moved_bytes: float

    @property
    def duration_s(self) -> float:
        """The change and all iterations. [s]"""
        return self.migration_s + self.num_iterations * self.measured.makespan_s

    @property
    def iteration_time_s(self) -> float:
        """Time per iteration. [s]"""
        return self.duration_s / self.num_iterations

    @property
    def utilisation(self) -> float:
        """Useful FLOPs over the peak of *all* GPUs of all domains times ``duration_s``."""
        num_flops = self.num_iterations * self.program.useful_flops
        return num_flops / (self.program.peak_flops_per_s * self.duration_s)

    @property
    def communication_cost_cycles(self) -> float:
        """Exposed communication per iteration, all domains together. [cycles]

        While the plan is changed nothing is computed, so that time counts for every domain in use.
        """
        num_used = len({stage.domain for stage in self.program.stages})
        waited_cycles = num_used * self.migration_s * CYCLES_PER_S
        return exposed_cycles(self.measured) + waited_cycles / self.num_iterations

    @property
    def communication_bytes(self) -> float:
        """Bytes over links per iteration, hop by hop; moved bytes count once each."""
        return sent_bytes(self.program)[0] + self.moved_bytes / self.num_iterations

    @cached_property
    def computing_s(self) -> float:
        """Time that all devices compute in an iteration. [s]"""
        stages = self.program.stages  # of one pipeline, each of which does all microbatches
        return stages[0].num_gradients * sum(sum(stage.durations_s[:2]) for stage in stages)

    @cached_property
    def bubble_fraction(self) -> float:
        """Share of the time that the devices in use stand idle."""
        busy_s = self.num_iterations * self.computing_s
        return 1.0 - busy_s / (self.program.num_devices * self.duration_s)

    @property
    def fits_memory(self) -> bool:
        """Whether every domain has the memory that the plan needs."""
        return all(memory.fits for memory in self.program.memory)

    @property
    def memory_overflow_fraction(self) -> float:
        """Largest memory overflow of a domain, as a fraction of its memory."""
        return max(memory.overflow_fraction for memory in self.program.memory)


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


MEASURED_BYTES = "communication_bytes"
"""Metric that has the bytes where the cost is in cycles."""


def sent_bytes(program: Program) -> tuple[float, float]:
    """Bytes that an iteration sends from domain to domain, on every link of a route and once."""
    hops_bytes = crossing_bytes = 0.0
    for flow in program.flows:
        route = program.channels[flow.channel].route if flow.channel >= 0 else ()
        num_bytes = flow.num_messages * flow.num_bytes if route else 0.0
        hops_bytes += len(route) * num_bytes
        crossing_bytes += num_bytes
    return hops_bytes, crossing_bytes


def exposed_cycles(measured: Measured) -> float:
    """Exposed communication of an iteration, all domains together. [cycles]"""
    return sum(exposed_s * CYCLES_PER_S for exposed_s in measured.exposed_s)
