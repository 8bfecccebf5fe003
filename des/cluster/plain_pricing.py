"""Plain prices: a service rate by type and number of GPUs, and one restart cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from des.cluster.free_gpus import FreeCounts
from des.cluster.live_job import LiveJob
from des.cluster.policy import Traffic
from des.plan.replacement import Replacement


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainPricing:
    """Rates that do not depend on other jobs.

    A job on several types of GPU is as fast as on the slowest. An elastic job has the speed of its
    curve; its statistical efficiency counts, so what it does is progress.
    """

    replacement: Replacement = field(default_factory=Replacement)

    def rates(self, running: Mapping[int, LiveJob], free: FreeCounts) -> Mapping[int, float] | None:
        """None: every job has a rate of its own."""
        return None

    def rate(self, job: LiveJob, free: FreeCounts) -> float:
        """Service per second."""
        value, rate = job.job, 1.0
        if value.speed_of_type:
            speeds = dict(value.speed_of_type)
            nodes = free.nodes.nodes
            rate = min(speeds.get(nodes[node].gpu_type, 1.0) for node, _ in job.allocation)
        if value.curve is not None:
            rate *= value.curve.goodput(job.held, value.num_gpus)
        return rate

    def restart_s(self, job: LiveJob, free: FreeCounts) -> float:
        """Time of a restart; none for a first launch."""
        return self.replacement.restart_s if job.launches > 1 else 0.0

    def traffic(self, job: LiveJob, free: FreeCounts) -> Traffic | None:
        """None: links are not known."""
        return None
