"""Recipes of the suites' worlds: cells that each block holds once, and free parameters."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np

from agents.decision.load import LoadLaw
from des import Placement, Plan, PlaneWorlds, Topology, Workload, build_workload
from des.base.checks import MOST_ITEMS
from des.costs.feasibility import domain_memory
from des.job.model_presets import STUDIED_MODELS
from des.plan.replacement import Replacement
from des.world.transfer_ratio import (
    mean_bandwidth_bytes_per_s,
    nominal_iteration_s,
    speed_per_bandwidth,
)
from scenarios.suites.laws import LAWS
from scenarios.suites.world import LEAST_ITERATIONS, Purpose, draw_purpose

LEAST_BANDWIDTH_BYTES_PER_S, MOST_BANDWIDTH_BYTES_PER_S = 1e9 / 8, 10e9 / 8
"""Range of the mean bandwidth over the links of a world."""

LEAST_FLOPS_PER_S, MOST_FLOPS_PER_S = 0.48e15, 3.2e15
"""Attainable speed of a domain of 8 GPUs: at half their peak those of 120 to 800 TFLOP/s."""

GPU_MEMORIES_BYTES = (80e9, 141e9, 288e9)
"""As GPUs on the market have it."""

MOST_TRIES = 512
"""Most draws for one place; a suite whose cells can be met needs far fewer."""

_ORDER, _RATIO, _WORLD = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Conditions on a world; the rest of it is drawn until it meets them."""

    num_domains: int
    ratio_bounds: tuple[float, float]
    law: str
    dwell_epochs: int
    epoch_s: float
    replacement: Replacement


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Links and job of a world, with what the cell says of it."""

    cell: Cell
    ratio: float
    topology: Topology
    workload: Workload
    iterations_per_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldDraw:
    """Network and job of a world, before it is known whether a plan fits."""

    topology: Topology
    workload: Workload


DrawWorld = Callable[[Cell, float, np.random.Generator], WorldDraw | None]
"""Draws the network and the job of a cell and a ratio; None where figures would be out of range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Worlds by place; each depends on nothing but the fields, a seed, a purpose and its place.

    Cells are all combinations of the first fields. Places come in blocks of as many as there are
    cells, in an order of its own each, so every block has each cell once.

    Attributes
    ----------
    stream
        Number of the random numbers; recipes of the same stream and cells but for the replacement
        draw the same links and jobs.
    ratio_bounds
        Ranges of the transfer/compute ratio, which is log-uniform within one; equal bounds give
        that number.
    dynamics
        Law of the links by name, and for how many epochs the load is held; see `LAWS`.
    num_microbatches
        Counts to choose from; not a part of the cell, as short epochs do not allow many.
    draw_world
        None draws equal domains on a plane, with a job of ``models`` and ``num_microbatches``.
    least_ratio
        Least ratio that ``draw_world`` can give a number of domains; None: any.
    """

    stream: int
    num_domains: tuple[int, ...]
    ratio_bounds: tuple[tuple[float, float], ...]
    dynamics: tuple[tuple[str, int], ...]
    epochs_s: tuple[float, ...]
    replacements: tuple[Replacement, ...] = (Replacement(),)
    num_microbatches: tuple[int, ...] = (32,)
    models: tuple[str, ...] = STUDIED_MODELS
    draw_world: DrawWorld | None = None
    least_ratio: Callable[[int], float] | None = None
    most_tries: int = MOST_TRIES
    num_epochs: int = 64
    schedule: str = "1f1b_4x"

    def cells(self) -> Iterator[Cell]:
        """All combinations of the conditions on the worlds."""
        for num_domains, bounds, (law, dwell_epochs), epoch_s, replacement in product(
            self.num_domains, self.ratio_bounds, self.dynamics, self.epochs_s, self.replacements
        ):
            yield Cell(
                num_domains=num_domains,
                ratio_bounds=bounds,
                law=law,
                dwell_epochs=dwell_epochs,
                epoch_s=epoch_s,
                replacement=replacement,
            )

    def draw(self, seed: int, place: int, purpose: Purpose) -> Drawn:
        """Draw the world of a place.

        Raises
        ------
        ValueError
            If no job fits the cell in any of ``most_tries``.
        """
        cell = self._cell_of(seed, place)
        ratio = self._ratio_of(cell, self._generator(seed, _RATIO, place))
        for attempt in range(self.most_tries):
            rng = self._generator(seed, _WORLD, place, attempt)
            drawn = self._try(cell, ratio, rng)
            if drawn is not None and draw_purpose(drawn.topology, drawn.workload) == purpose:
                return drawn
        raise ValueError(
            f"recipe: models, num_microbatches and epochs_s must allow a world of ratio {ratio:g} "
            f"for {cell.num_domains} domains and epochs of {cell.epoch_s:g} s, got none in "
            f"{self.most_tries} tries"
        )

    def _cell_of(self, seed: int, place: int) -> Cell:
        cells = tuple(self.cells())
        block, at = divmod(place, len(cells))
        return cells[int(self._generator(seed, _ORDER, block).permutation(len(cells))[at])]

    def _ratio_of(self, cell: Cell, rng: np.random.Generator) -> float:
        """Log-uniform within the bounds of the cell, as far as its domains can have the ratio."""
        low, high = cell.ratio_bounds
        ratio: float = low * (high / low) ** float(rng.random())
        least = low if self.least_ratio is None else self.least_ratio(cell.num_domains)
        if low < high and ratio < least:
            least = min(least, high)
            ratio = least * (high / least) ** float(rng.random())
        return ratio

    def _try(self, cell: Cell, ratio: float, rng: np.random.Generator) -> Drawn | None:
        """A world of the ratio; None where no plan fits into memory or epochs are too short."""
        drawn = (self.draw_world or self._on_a_plane)(cell, ratio, rng)
        if drawn is None:
            return None
        topology, workload = drawn.topology, drawn.workload
        topology = replace(topology, dynamics=LAWS[cell.law](cell.dwell_epochs * cell.epoch_s))
        quickest_s = quickest_even_s(topology, workload, self.schedule)
        if not LEAST_ITERATIONS * quickest_s <= cell.epoch_s <= MOST_ITEMS * quickest_s:
            return None
        return Drawn(
            cell=cell,
            ratio=ratio,
            topology=topology,
            workload=workload,
            iterations_per_epoch=int(cell.epoch_s / quickest_s),
        )

    def _on_a_plane(self, cell: Cell, ratio: float, rng: np.random.Generator) -> WorldDraw | None:
        """Equal domains whose speed gives the ratio, and a job for which that is in range."""
        jobs = [
            (workload, bounds)
            for model in self.models
            for workload in [_workload(model, int(rng.choice(self.num_microbatches)))]
            if (bounds := _bandwidth_bounds(workload, cell.num_domains, ratio)) is not None
        ]
        if not jobs:
            return None
        workload, (least, most) = jobs[int(rng.integers(len(jobs)))]
        topology = _world(
            rng,
            num_domains=cell.num_domains,
            bandwidth_bytes_per_s=least * (most / least) ** float(rng.random()),
            speed_per_bandwidth=speed_per_bandwidth(workload, cell.num_domains, ratio),
        )
        return None if topology is None else WorldDraw(topology=topology, workload=workload)

    def _generator(self, seed: int, part: int, place: int, attempt: int = 0) -> np.random.Generator:
        """Generator of one place: no two share numbers, and none depends on who draws first."""
        key = np.array([seed, self.stream], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=key, counter=[0, part, place, attempt]))


def load_law_of(cell: Cell) -> LoadLaw:
    """Speed of the domains: within +-20 %, held as the cell says."""
    return LoadLaw(dwell_epochs=cell.dwell_epochs)


def quickest_even_s(topology: Topology, workload: Workload, schedule: str) -> float:
    """Least `nominal_iteration_s` of the even splits that fit into memory, over 1 to K domains. [s]

    Infinite if none fits. Domains with the most memory are in use first.
    """
    by_memory = sorted(topology.domains, key=lambda domain: -domain.memory_bytes)
    ranked = replace(topology, domains=tuple(by_memory), links=())
    times_s = {
        num_stages: nominal_iteration_s(workload, topology, num_stages)
        for num_stages in _stage_counts(min(topology.num_domains, workload.num_layers))
    }
    quickest_first = sorted(times_s, key=times_s.__getitem__)
    fitting = (count for count in quickest_first if _fits(ranked, workload, schedule, count))
    return next((times_s[count] for count in fitting), math.inf)


def _stage_counts(most: int) -> Iterator[int]:
    """All up to 10 stages; of more, powers of two and the most."""
    return (
        count
        for count in range(1, most + 1)
        if count <= 10 or count == most or count & (count - 1) == 0
    )


def _fits(topology: Topology, workload: Workload, schedule: str, num_stages: int) -> bool:
    placement = Placement.even(num_stages, workload.num_layers)
    plan = Plan(placement=placement, schedule=schedule)
    return all(memory.fits for memory in domain_memory(topology, workload, plan))


def _bandwidth_bounds(
    workload: Workload, num_domains: int, ratio: float
) -> tuple[float, float] | None:
    """Mean bandwidths at which a GPU speed in range gives the ratio; None if there are none."""
    per_bandwidth = speed_per_bandwidth(workload, num_domains, ratio)
    least = max(LEAST_BANDWIDTH_BYTES_PER_S, LEAST_FLOPS_PER_S / per_bandwidth)
    most = min(MOST_BANDWIDTH_BYTES_PER_S, MOST_FLOPS_PER_S / per_bandwidth)
    return (least, most) if least < most else None


def _world(
    rng: np.random.Generator,
    *,
    num_domains: int,
    bandwidth_bytes_per_s: float,
    speed_per_bandwidth: float,
) -> Topology | None:
    """Domains as fast as the mean of the drawn links asks for; None if that is out of range."""
    world = PlaneWorlds(
        num_domains=num_domains, mean_bandwidth_bytes_per_s=bandwidth_bytes_per_s
    ).draw(rng)
    gpu_memory_bytes = float(rng.choice(GPU_MEMORIES_BYTES))
    bandwidth = mean_bandwidth_bytes_per_s(world)
    flops_per_s = bandwidth * speed_per_bandwidth
    if not (
        LEAST_BANDWIDTH_BYTES_PER_S <= bandwidth <= MOST_BANDWIDTH_BYTES_PER_S
        and LEAST_FLOPS_PER_S <= flops_per_s <= MOST_FLOPS_PER_S
    ):
        return None
    domains = tuple(
        replace(
            domain,
            gpu_peak_flops_per_s=flops_per_s / domain.num_gpus / domain.attainable_fraction,
            gpu_memory_bytes=gpu_memory_bytes,
        )
        for domain in world.domains
    )
    return replace(world, domains=domains)


@lru_cache(maxsize=256)
def _workload(model: str, num_microbatches: int) -> Workload:
    return build_workload(model, num_microbatches=num_microbatches)
