"""Cases on worlds of unequal links and of GPUs."""

from dataclasses import replace

from strategies import plan, unit_workload, world

from calibration.cases.case import PlacementCase

GIB = 2**30

UNEQUAL = world(
    "ABC",
    {
        "AB": (1 * GIB, 0.010),
        "AC": (2 * GIB, 0.020),
        "BA": (4 * GIB, 0.030),
        "BC": (4 * GIB, 0.030),
        "CA": (4 * GIB, 0.030),
        "CB": (4 * GIB, 0.060),
    },
)


def case_of(topology, *domain_of_layer, granularity="domain", parallelism=()):
    """Layers of a second each, way and back, on domains of a world."""
    workload = unit_workload([(1.0, 2.0)] * len(domain_of_layer), num_microbatches=2)
    chosen = replace(plan(*domain_of_layer), parallelism=parallelism)
    return PlacementCase(topology=topology, workload=workload, plan=chosen, granularity=granularity)
