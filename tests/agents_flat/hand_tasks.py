"""Tasks of two layers on two domains that are worked out by hand."""

from strategies import unit_workload, world

from agents.flat.task import PlacementTask
from agents.flat.worlds import GivenWorld
from des import Placement, Topology

ASYMMETRIC = world("AB", {"AB": (8.0, 0.25), "BA": (2.0, 0.5)})
"""4 bytes take 0.5 s + 0.25 s from A to B, 2 s + 0.5 s back."""
ASYMMETRIC_S = 12.25
"""GPipe, a layer of 1 s + 2 s on each of A and B, two microbatches: see test_engine."""
SPLIT, TOGETHER = Placement(domain_of_layer=(0, 1)), Placement(domain_of_layer=(0, 0))


def task(topology: Topology = ASYMMETRIC, **changes: object) -> PlacementTask:
    """Two layers of 1 s forward and 2 s backward, two microbatches, messages of 4 bytes."""
    workload = unit_workload([(1, 2), (1, 2)], num_microbatches=2, message_bytes=4.0)
    fields = {"workload": workload, "schedule": "gpipe", **changes}
    return PlacementTask(world=GivenWorld(topology=topology), **fields)


def reward(given: PlacementTask, placement: Placement) -> float:
    """Reward of a placement on the base links, after the uniform one."""
    topology = given.world.world(0)
    epoch = given.run_epoch(topology, placement, given.uniform_placement)
    return given.reward(given.metrics(epoch, given.baseline(topology)))
