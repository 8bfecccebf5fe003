"""Small cases for execution traces."""

from dataclasses import replace

from sharing import gpus
from strategies import plan, unit_workload, world

from calibration.cases.case import PlacementCase
from des import Parallelism

LINKS = {"AB": (10.0, 1.0), "BA": (10.0, 1.0), "BC": (10.0, 1.0), "CB": (10.0, 1.0)}


def case(*domain_of_layer: int, num_microbatches: int = 1, schedule: str = "1f1b") -> PlacementCase:
    """Layers of 1 s and 2 s on domains A, B and C in a row; messages of 20 bytes take 2 s + 1 s."""
    workload = unit_workload(
        [(1.0, 2.0)] * len(domain_of_layer), num_microbatches=num_microbatches, message_bytes=20.0
    )
    return PlacementCase(
        topology=world("ABC", LINKS),
        workload=workload,
        plan=plan(*domain_of_layer, schedule=schedule),
    )


def on_gpus(*domain_of_layer: int, parallelism: Parallelism, num_gpus: int = 4) -> PlacementCase:
    """The same at granularity ``gpu``."""
    made = case(*domain_of_layer)
    domains = tuple(gpus(name, num_gpus, (1e9, 1e-6)) for name in "ABC")
    return replace(
        made,
        topology=replace(made.topology, domains=domains),
        plan=replace(made.plan, parallelism=(parallelism,) * 3),
        granularity="gpu",
    )


def without_queues(made: PlacementCase) -> PlacementCase:
    """The same where messages never meet."""
    topology = made.topology
    rules = replace(topology.transport, sharing="none")
    return replace(made, topology=replace(topology, transport=rules))
