"""A world from a topology file, with a job and all that a suite would say of it."""

import math
from dataclasses import replace

from agents.planners.search.search import search
from des import STEADY, Topology, Workload
from des.plan.replacement import Replacement
from des.world.transfer_ratio import transfer_compute_ratio_of
from scenarios.suites import LoadLaw, SuiteWorld
from scenarios.suites.laws import LAWS
from scenarios.suites.recipe import quickest_even_s
from scenarios.suites.world import LEAST_ITERATIONS

SCHEDULES = ("1f1b_4x", "1f1b_2x", "1f1b")
"""Schedules of methods that choose none: the first with which an even split fits into memory."""

EPOCH_S = 1200.0
"""Length of an epoch, unless `LEAST_ITERATIONS` take longer. [s]"""


MOVING_CELLS = {
    "eval_static": ("steady", 1, 1200.0, True),
    "eval_calm": ("uniform", 1, 300.0, True),
    "eval_held": ("uniform", 8, 1200.0, True),
    "hard": ("markov_fast", 1, 1200.0, True),
    "cheap_moves": ("markov_fast", 1, 1200.0, False),
}
"""Law of the links, epochs of a held load, length of an epoch, whether moves pay for bytes."""


def suite_world_of(name: str, topology: Topology, workload: Workload) -> SuiteWorld:
    """Make a world of a network, whose own law of movement is left out, and a job.

    Speeds are within ±20 %, redrawn every epoch, but no domain is quicker than its peak.

    Raises
    ------
    ValueError
        If two domains have no link of their own (plans then need relays, which the compiled search
        cannot judge), or no plan fits into their memory.
    """
    num_pairs = topology.num_domains * (topology.num_domains - 1)
    if len(topology.link_index) < num_pairs:
        raise ValueError(
            f"world {name}: targets and Hi-PPO need a link in each direction between every two "
            f"domains, {num_pairs} in all; got {len(topology.link_index)}"
        )
    ratio = transfer_compute_ratio_of(workload, topology)
    schedule, quickest_s = _nominal(_without_law(topology), workload)
    epoch_s = max(EPOCH_S, LEAST_ITERATIONS * quickest_s)
    return SuiteWorld(
        name=name,
        suite="file",
        seed=0,
        index=0,
        topology=_without_law(topology),
        workload=workload,
        law="steady",
        load=_load_of(topology),
        schedule=schedule,
        epoch_s=epoch_s,
        num_epochs=64,
        iterations_per_epoch=max(LEAST_ITERATIONS, int(epoch_s / quickest_s)),
        replacement=Replacement(),
        target_ratio=ratio,
    )


def as_in_suite(name: str, world: SuiteWorld, num_epochs: int) -> SuiteWorld:
    """Give the world of a file the law and load of a suite in `MOVING_CELLS`."""
    law, dwell_epochs, nominal_s, pays_bytes = MOVING_CELLS[name]
    iteration_s = world.epoch_s / world.iterations_per_epoch
    epoch_s = max(nominal_s, LEAST_ITERATIONS * iteration_s)
    return replace(
        world,
        name=f"{world.name}-{name}",
        topology=replace(world.topology, dynamics=LAWS[law](dwell_epochs * epoch_s)),
        law=law,
        load=replace(world.load, dwell_epochs=dwell_epochs),
        epoch_s=epoch_s,
        iterations_per_epoch=max(LEAST_ITERATIONS, int(epoch_s / iteration_s)),
        num_epochs=1 if name == "eval_static" else num_epochs,
        replacement=Replacement(pays_bytes=pays_bytes),
    )


def _nominal(topology: Topology, workload: Workload) -> tuple[str, float]:
    """Schedule of methods that choose none, and the time of an iteration of a fair plan. [s]"""
    for schedule in SCHEDULES:
        quickest_s = quickest_even_s(topology, workload, schedule)
        if math.isfinite(quickest_s):
            return schedule, quickest_s
    found = search(topology, workload)  # raises where no plan fits
    return found.plan.schedule, found.makespan_s


def _load_of(topology: Topology) -> LoadLaw:
    most = max(domain.attainable_fraction for domain in topology.domains)
    return LoadLaw(high_factor=max(1.0, min(LoadLaw().high_factor, 1.0 / most)))


def _without_law(topology: Topology) -> Topology:
    return replace(topology, dynamics=STEADY)
