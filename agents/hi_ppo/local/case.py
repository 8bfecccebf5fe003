"""One local decision: a domain, its GPUs, and the layers that were placed there."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from agents.decision.training_job import TrainingJob
from des import NO_CORRECTIONS, Corrections, Domain
from des.base.checks import require_count
from des.devices.gpus import GROUP_SIZES, GpuTopology
from des.schedules import schedule_named
from des.world.domain_load import IDLE, DomainLoad

MOST_LOCAL_GPUS = 8
"""Most GPUs of a server that the local agent knows one by one."""

MOST_LOCAL_SERVERS = 8
"""Most servers of a domain that the local agent decides on, with at most 64 GPUs together."""

RECOMPUTATIONS = ("flash", "full")
"""Recomputations to choose from: all activations but the scores are kept, or a layer's input only.

``none`` keeps more than ``flash`` and saves no work that is counted, ``selective`` keeps as much
and works more (`des.job.transformer`), so neither can be better.
"""


@lru_cache(maxsize=1024)
def sums_of(job: TrainingJob, microbatch_size: int, recomputation: str) -> np.ndarray:
    """Sums over all layers before one (L + 1, 4): FLOPs of F and B, parameters, activations."""
    sums = job.workload(microbatch_size, recomputation).sums_before
    return np.column_stack(
        (sums.forward_flops, sums.backward_flops, sums.num_parameters, sums.activation_bytes)
    )


@dataclass(frozen=True, kw_only=True)
class DomainCase:
    """A domain with the layers that were placed there, before its GPUs share them.

    Attributes
    ----------
    domain
        Its speed is what is left under its load, as everywhere (see
        `des.world.domain_load.DomainLoad`).
    first_layer, num_layers
        The layers in a row that were placed there.
    stages_before, stages_behind
        Stages of other domains, towards the input and towards the output.
    schedule
        ``gpipe`` or ``1f1b``, with a factor or without: how many microbatches are held.
    """

    domain: Domain
    job: TrainingJob
    first_layer: int
    num_layers: int
    stages_before: int = 0
    stages_behind: int = 0
    schedule: str = "1f1b"
    load: DomainLoad = IDLE
    corrections: Corrections = NO_CORRECTIONS

    def __post_init__(self) -> None:
        owner = f"local case of domain {self.domain.name}"
        for name in ("first_layer", "stages_before", "stages_behind"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ValueError(
                    f"{owner}: {name} must be a whole number of at least 0, got {value!r}"
                )
        require_count(owner, "num_layers", self.num_layers)
        if self.domain.kernels is not None:
            raise ValueError(
                f"{owner}: layer_times must be fraction, which the local level was trained with; "
                f"got {self.domain.source_of_layer_times}"
            )
        if self.job.precision != "bf16":
            raise ValueError(
                f"{owner}: precision must be bf16, which the local level was trained with; "
                f"got {self.job.precision}"
            )
        if self.first_layer + self.num_layers > self.job.layer_count:
            raise ValueError(
                f"{owner}: layers must end by the model's {self.job.layer_count}, "
                f"got {self.num_layers} from {self.first_layer} on"
            )
        schedule_named(self.schedule)
        if self.schedule.split("_")[0] not in {"gpipe", "1f1b"}:
            raise ValueError(
                f"{owner}: schedule must be gpipe or 1f1b, with a factor or without; "
                f"got {self.schedule!r}"
            )

    @property
    def free_gpus(self) -> tuple[int, ...]:
        """Numbers of the GPUs that may be used."""
        return tuple(range(self.domain.num_gpus))

    @property
    def room_bytes(self) -> float:
        """Memory of one GPU that others do not hold."""
        return self.domain.gpu_memory_bytes * (1.0 - self.load.memory_occupancy)

    @cached_property
    def warm_up_factor(self) -> float:
        """Forwards of a stage to begin with, for each stage behind it; infinite under GPipe."""
        if self.schedule == "gpipe":
            return np.inf
        factor = schedule_named(self.schedule)[1]
        return 1.0 if factor is None else factor


@dataclass(frozen=True, kw_only=True)
class LocalCase(DomainCase):
    """A domain whose GPUs are known one by one: what the local agent decides on.

    The inner network of the domain is that of ``gpus``: all its GPUs, or those of each of its
    servers, which are alike. GPUs of several servers are numbered server by server and all free.
    """

    gpus: GpuTopology

    def __post_init__(self) -> None:
        owner = f"local case of domain {self.domain.name}"
        count, nodes = self.gpus.num_gpus, self.domain.nodes
        if nodes is None and count != self.domain.num_gpus:
            raise ValueError(f"{owner}: gpus must be its {self.domain.num_gpus} GPUs, got {count}")
        if count > MOST_LOCAL_GPUS:
            raise ValueError(f"{owner}: gpus must be at most {MOST_LOCAL_GPUS}, got {count}")
        if nodes is not None and nodes.gpus_per_node != count:
            raise ValueError(
                f"{owner}: gpus must be the {nodes.gpus_per_node} GPUs of a node, got {count}"
            )
        if not knows_servers(self.domain, self.gpus):
            raise ValueError(
                f"{owner}: servers must be at most {MOST_LOCAL_SERVERS} of "
                f"{', '.join(map(str, GROUP_SIZES))} GPUs, all free; got {self.num_servers} of "
                f"{count}, {len(self.gpus.free)} free"
            )
        super().__post_init__()

    @property
    def num_servers(self) -> int:
        """Servers of the domain; GPUs without ``nodes`` are of one."""
        return self.domain.num_nodes

    @property
    def free_gpus(self) -> tuple[int, ...]:
        """Numbers of the GPUs that other jobs have not taken."""
        return self.gpus.free if self.num_servers == 1 else super().free_gpus


def knows_servers(domain: Domain, gpus: GpuTopology) -> bool:
    """Whether the local agent decides on servers of these GPUs, and on that number of them.

    Servers of a power of two GPUs, all free, are filled by devices without remainder.
    """
    if domain.num_nodes == 1:
        return gpus.num_gpus <= MOST_LOCAL_GPUS
    are_free = len(gpus.free) == gpus.num_gpus
    is_small = domain.num_nodes <= MOST_LOCAL_SERVERS
    return is_small and are_free and gpus.num_gpus in GROUP_SIZES


@dataclass(frozen=True, kw_only=True)
class ServersCase(DomainCase):
    """A domain of several equal servers: its GPUs are known one by one as those of one server.

    They are numbered server by server; all of them are free.
    """

    server: GpuTopology

    def __post_init__(self) -> None:
        owner = f"local case of domain {self.domain.name}"
        nodes = self.domain.nodes
        if nodes is None or nodes.gpus_per_node != self.server.num_gpus:
            given = "no nodes" if nodes is None else f"nodes of {nodes.gpus_per_node}"
            raise ValueError(
                f"{owner}: server must have the GPUs of a node, "
                f"got {self.server.num_gpus} and {given}"
            )
        if len(self.server.free) != self.server.num_gpus:
            raise ValueError(
                f"{owner}: free must be all {self.server.num_gpus} GPUs of a server, "
                f"got {len(self.server.free)}"
            )
        super().__post_init__()
