"""Jobs of a queue: values that a workload hands to the cluster in order of arrival."""

import math
from dataclasses import dataclass

from des.base.checks import require_count, require_non_negative, require_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedCurve:
    """Speed of an elastic job by its number of GPUs, relative to its own ``num_gpus``.

    Attributes
    ----------
    compute, overhead, communication
        Time of an iteration on n GPUs is ``compute / n + overhead + communication * n`` in any
        unit, as Optimus (Peng et al., EuroSys'18) fits it for synchronous training.
    least_gpus, most_gpus
        Numbers of GPUs that a scheduler may choose from.
    noise_scale
        Gradient noise scale over the batch size at ``num_gpus``; more GPUs mean a larger batch and
        a statistical efficiency of ``(noise + 1) / (noise + n / num_gpus)`` (Pollux, OSDI'21).
    """

    compute: float = 1.0
    overhead: float = 0.0
    communication: float = 0.0
    least_gpus: int = 1
    most_gpus: int = 8
    noise_scale: float = math.inf

    def __post_init__(self) -> None:
        require_positive("speed curve", "compute", self.compute)
        require_non_negative("speed curve", "overhead", self.overhead)
        require_non_negative("speed curve", "communication", self.communication)
        require_count("speed curve", "least_gpus", self.least_gpus)
        require_count("speed curve", "most_gpus", self.most_gpus)
        if self.least_gpus > self.most_gpus:
            raise ValueError(
                f"speed curve: most_gpus must be at least least_gpus, {self.least_gpus}, "
                f"got {self.most_gpus}"
            )
        if not self.noise_scale >= 0:
            raise ValueError(
                f"speed curve: noise_scale must not be negative, got {self.noise_scale!r}"
            )

    def speed(self, num_gpus: int, own_gpus: int) -> float:
        """Iterations per time on a number of GPUs, over those on the job's own number.

        Examples
        --------
        >>> SpeedCurve(compute=1.0, overhead=1.0).speed(2, 1)
        1.3333333333333333
        """
        return self._time(own_gpus) / self._time(num_gpus)

    def goodput(self, num_gpus: int, own_gpus: int) -> float:
        """Speed times statistical efficiency, over that on the job's own number of GPUs.

        Examples
        --------
        >>> SpeedCurve(noise_scale=1.0).goodput(4, 2)
        1.3333333333333333
        """
        speed = self.speed(num_gpus, own_gpus)
        if math.isinf(self.noise_scale):
            return speed
        return speed * (self.noise_scale + 1.0) / (self.noise_scale + num_gpus / own_gpus)

    def _time(self, num_gpus: int) -> float:
        return self.compute / num_gpus + self.overhead + self.communication * num_gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """A job that arrives at the cluster and needs a gang of GPUs for some time.

    Attributes
    ----------
    job_id
        Number of the job, unique within a workload.
    num_gpus
        GPUs that it needs at once; it runs on all of them or not at all.
    service_s
        Time that it needs on its GPUs at rate 1. [s]
    iteration_s
        Time of one of its iterations at rate 1. [s]
    name, tenant, user, model
        Own name, owners and model, as the trace gives them.
    priority
        Larger goes first under orderings by priority.
    consolidated
        Whether it prefers GPUs of one node.
    level, is_level_required
        Level of the nodes (``node``, ``rack``, ``domain``) within one unit of which it should or
        must run; none: anywhere.
    domain, gpu_type
        The only domain, the only type of GPU that will do; none: any.
    speed_of_type
        Rates on types of GPU; 1 on a type that is not named.
    curve
        Speeds on other numbers of GPUs; None: the job is rigid.
    intensity
        Computation over communication, in any unit, for orderings by GPU intensity.
    state_bytes
        Model state that follows the job to another domain. [bytes]
    """

    job_id: int
    arrival_s: float
    num_gpus: int
    service_s: float
    iteration_s: float = 1.0
    name: str = ""
    tenant: str = ""
    user: str = ""
    model: str = ""
    priority: int = 0
    consolidated: bool = False
    level: str = ""
    is_level_required: bool = False
    domain: str = ""
    gpu_type: str = ""
    speed_of_type: tuple[tuple[str, float], ...] = ()
    curve: SpeedCurve | None = None
    intensity: float = 1.0
    state_bytes: float = 0.0

    def __post_init__(self) -> None:
        # One comparison for all where nothing is wrong: workloads have a million jobs.
        if not (
            0 <= self.arrival_s < math.inf
            and 0 < self.service_s < math.inf
            and 0 < self.iteration_s < math.inf
            and 0 < self.num_gpus < 10**6
            and self.intensity > 0
            and self.state_bytes >= 0
        ):
            owner = f"job {self.job_id}"
            require_non_negative(owner, "arrival_s", self.arrival_s)
            require_positive(owner, "service_s", self.service_s)
            require_positive(owner, "iteration_s", self.iteration_s)
            require_count(owner, "num_gpus", self.num_gpus, 10**6 - 1)
            require_positive(owner, "intensity", self.intensity)
            require_non_negative(owner, "state_bytes", self.state_bytes)
        if self.is_level_required and not self.level:
            raise ValueError(
                f"job {self.job_id}: level must be given where is_level_required, got none"
            )
