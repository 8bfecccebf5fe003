"""Networks that the plan policy of Hi-PPO is trained on: real sites under changing conditions."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from des import Topology, Workload
from des.plan.replacement import Replacement
from scenarios.suites.recipe import Cell, WorldDraw
from scenarios.suites.sites import site_world
from scenarios.suites.world import draw_purpose

LEAST_DOMAINS, MOST_DOMAINS = 2, 64
"""Range of the numbers of sites, which are spread evenly on a log scale, as are the ratios."""

LEAST_RATIO, MOST_RATIO = 0.3, 300.0

_NUM_KEPT, _NUM_AT_FIRST, _USES = 1024, 32, 6
"""Networks that are at hand; how many there are at the beginning; and how many networks are taken
before a new one comes in, as drawing them takes longer than judging plans."""

_MOST_TRIES_OF_A_CELL = 64
"""Tries until a cell whose figures cannot be met is left."""


def plan_networks(seed: int) -> Iterator[tuple[Topology, Topology, Workload]]:
    """Networks of sites as they are at some time, at base figures, and the jobs.

    Each is taken about six times, in no order. None is one that the evaluation suites could draw.
    """
    rng = np.random.default_rng(seed)
    fresh = _fresh(rng)
    kept = [next(fresh) for _ in range(_NUM_AT_FIRST)]
    for taken in itertools.count():
        if taken % _USES == 0:
            if len(kept) < _NUM_KEPT:
                kept.append(next(fresh))
            else:
                kept[int(rng.integers(_NUM_KEPT))] = next(fresh)
        yield kept[int(rng.integers(len(kept)))]


def _fresh(rng: np.random.Generator) -> Iterator[tuple[Topology, Topology, Workload]]:
    while True:
        drawn = _drawn(rng)
        if drawn is not None and draw_purpose(drawn.topology, drawn.workload) == "train":
            yield _moved(drawn.topology, rng), drawn.topology, drawn.workload


def _drawn(rng: np.random.Generator) -> WorldDraw | None:
    """Draw sites and a job of one cell; None where its figures were never in range."""
    num_domains = round(LEAST_DOMAINS * (MOST_DOMAINS / LEAST_DOMAINS) ** rng.random())
    ratio = LEAST_RATIO * (MOST_RATIO / LEAST_RATIO) ** rng.random()
    cell = Cell(
        num_domains=num_domains,
        ratio_bounds=(ratio, ratio),
        law="steady",
        dwell_epochs=1,
        epoch_s=1.0,
        replacement=Replacement(),
    )
    tries = (site_world(cell, ratio, rng) for _ in range(_MOST_TRIES_OF_A_CELL))
    return next((one for one in tries if one is not None), None)


def _moved(topology: Topology, rng: np.random.Generator) -> Topology:
    """Half of all stand at base figures; else links vary, some are congested, and speeds too."""
    if rng.random() < 0.5:
        return topology
    share = float(rng.choice([0.0, 0.05, 0.3]))
    factors = rng.uniform(0.7, 1.3, size=len(topology.links))
    factors *= np.where(rng.random(len(factors)) < share, rng.uniform(0.05, 0.6), 1.0)
    speeds = rng.uniform(0.8, 1.2, size=topology.num_domains)
    return replace(
        topology,
        links=tuple(
            replace(link, bandwidth_bytes_per_s=link.bandwidth_bytes_per_s * factor)
            for link, factor in zip(topology.links, factors.tolist(), strict=True)
        ),
        domains=tuple(
            replace(domain, attainable_fraction=domain.attainable_fraction * speed)
            for domain, speed in zip(topology.domains, speeds.tolist(), strict=True)
        ),
    )
