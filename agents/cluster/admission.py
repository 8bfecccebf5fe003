"""Admission: which arrived jobs join the queue of the cluster."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from des.base.checks import require_positive
from des.cluster.live_job import LiveJob
from des.cluster.policy import View


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptAll:
    """Admit every job when it arrives."""

    def admit(self, view: View, arrived: deque[LiveJob]) -> list[LiveJob]:
        """Admit all."""
        found = list(arrived)
        arrived.clear()
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadThreshold:
    """Admit in order of arrival while the demand is at most ``threshold`` times the GPUs.

    The demand is tested before a job is added, so it may pass the threshold by one job, as in Blox.
    """

    threshold: float

    def __post_init__(self) -> None:
        require_positive("admission by load", "threshold", self.threshold)

    def admit(self, view: View, arrived: deque[LiveJob]) -> list[LiveJob]:
        """Admit from the head of the queue."""
        found: list[LiveJob] = []
        demand = view.demand_gpus
        while arrived and demand <= self.threshold * view.free.num_present:
            job = arrived.popleft()
            demand += job.job.num_gpus
            found.append(job)
        return found


@dataclass(slots=True, kw_only=True)
class Quota:
    """Admit jobs of a tenant while its admitted unfinished jobs want at most its quota of GPUs.

    A tenant without an entry has ``of_others``. A job wider than its quota is admitted when its
    tenant has no other, so that it does not wait for ever. Jobs of other tenants pass.
    """

    gpus_of: Mapping[str, int] = field(default_factory=dict)
    of_others: int

    def admit(self, view: View, arrived: deque[LiveJob]) -> list[LiveJob]:
        """Admit, in order of arrival, those whose tenant has room."""
        held: dict[str, int] = {}
        for job in view.live_jobs():
            held[job.job.tenant] = held.get(job.job.tenant, 0) + job.width
        found, left = [], []
        blocked: set[str] = set()
        for job in arrived:
            tenant, now = job.job.tenant, held.get(job.job.tenant, 0)
            quota = self.gpus_of.get(tenant, self.of_others)
            if tenant in blocked or (now and now + job.width > quota):
                blocked.add(tenant)
                left.append(job)
            else:
                held[tenant] = now + job.width
                found.append(job)
        arrived.clear()
        arrived.extend(left)
        return found
