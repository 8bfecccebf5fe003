"""Worlds and jobs of the measurements: equal domains, every two joined by a direct link."""

from dataclasses import dataclass
from itertools import permutations

from des import (
    STEADY,
    Domain,
    Law,
    Link,
    Placement,
    Plan,
    Topology,
    Transport,
    UniformLaw,
    Workload,
    build_workload,
)
from des.world.transport import PLAIN

MOVING = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2, update_interval_s=5.0)
DRAWN = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
LAWS = {"moving": MOVING, "drawn": DRAWN, "steady": STEADY}
"""Links that move every 5 s of an iteration, are drawn once an epoch, or stand still."""

FAIR = Transport(sharing="fair")
MODEL = "llama2_70b"
SEED = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A pipeline of stages, one in each domain, and its microbatches."""

    num_stages: int
    num_microbatches: int

    def __str__(self) -> str:
        return f"P{self.num_stages} M{self.num_microbatches}"


SIZES = (
    Size(num_stages=3, num_microbatches=8),
    Size(num_stages=8, num_microbatches=32),
    Size(num_stages=10, num_microbatches=64),
)
SMALL = (Size(num_stages=2, num_microbatches=2),)
"""Sizes of the figures, and of the tests."""


def mesh(num_domains: int, law: Law = MOVING, transport: Transport = PLAIN) -> Topology:
    """Domains of 8 GPUs, 5 Gbit/s and 30 ms each way between every two."""
    domains = [
        Domain(
            name=f"domain{index}",
            num_gpus=8,
            gpu_peak_flops_per_s=120e12,
            gpu_memory_bytes=80e9,
            gpu_memory_bandwidth_bytes_per_s=1600e9,
            attainable_fraction=0.5,
            intra_bandwidth_bytes_per_s=50e9,
            intra_latency_s=5e-7,
        )
        for index in range(num_domains)
    ]
    links = [
        Link(source=a.name, target=b.name, bandwidth_bytes_per_s=625e6, latency_s=0.03)
        for a, b in permutations(domains, 2)
    ]
    return Topology.of(domains, links, law, transport)


def job(num_microbatches: int) -> Workload:
    """Llama 2 70B in a number of microbatches."""
    return build_workload(MODEL, num_microbatches=num_microbatches)


def straight(size: Size, num_layers: int) -> Plan:
    """Layers in equal parts, a stage in each domain."""
    return Plan(placement=Placement.even(size.num_stages, num_layers))


def returning(size: Size, num_layers: int) -> Plan:
    """As many stages on half of the domains: the pipeline comes back, links and GPUs are shared."""
    half = (size.num_stages + 1) // 2
    order = [stage % half for stage in range(size.num_stages)] if half > 1 else [0, 1]
    counts = [stage.num_layers for stage in Placement.even(len(order), num_layers).stages]
    return Plan(placement=Placement.contiguous(order, counts))
