"""Fair share: quotas of tenants, which borrow what others leave and give it back when reclaimed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agents.cluster.key_orderings import QUANTUM_S
from des.base.checks import require_positive
from des.cluster.live_job import LiveJob
from des.cluster.policy import View

_BORROWED = 1e15
"""Key from which jobs are beyond the quota of their tenant: more than any time of arrival."""


@dataclass(slots=True, kw_only=True)
class FairShare:
    """Jobs within the quota of their tenant first, by arrival; then those that borrow.

    Of jobs that borrow those of the tenant that has the least beyond its quota, relative to the
    quota, go first. A job within its tenant's quota reclaims the GPUs of jobs that borrow; jobs
    that borrow take none from each other. Tenants without a quota have equal parts of the GPUs.
    """

    quota_gpus: Mapping[str, float] = field(default_factory=dict)
    quantum_s: float = QUANTUM_S
    preempts: bool = True
    blocks: bool = False
    backfills: bool = False
    changes: bool = True
    _key_of: dict[int, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for tenant, gpus in self.quota_gpus.items():
            require_positive(f"quota of tenant {tenant!r}", "gpus", gpus)

    def prepare(self, view: View) -> None:
        """Fill the quotas, running jobs first, and put what is beyond them in order."""
        jobs = list(view.live_jobs())
        tenants = {job.job.tenant for job in jobs}
        equal = view.free.num_present / max(1, len(tenants))
        used = dict.fromkeys(tenants, 0)
        self._key_of = {}
        for job in jobs:
            tenant = job.job.tenant
            quota = self.quota_gpus.get(tenant, equal)
            used[tenant] += job.width
            if used[tenant] <= quota:
                self._key_of[job.number] = job.job.arrival_s
            elif job.is_running:
                self._key_of[job.number] = 2 * _BORROWED
            else:
                self._key_of[job.number] = _BORROWED + used[tenant] / quota
        self._protect_borrowers(view)

    def _protect_borrowers(self, view: View) -> None:
        """Jobs that would borrow come after those that do, so they take nothing from them."""
        for number in view.waiting:
            if self._key_of[number] >= _BORROWED:
                self._key_of[number] += 2 * _BORROWED

    def key(self, job: LiveJob, now_s: float) -> float:
        """Key that was prepared; a job that was not seen yet comes by arrival."""
        return self._key_of.get(job.number, job.job.arrival_s)
