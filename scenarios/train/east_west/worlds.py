"""Worlds of a training on a named network and job: as they are, congested, and others like them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from agents.decision.frozen_network import freeze_topology
from agents.hi_ppo.placement.features import MOST_DOMAINS
from des import Law, Topology, UniformLaw, Workload, check_job_fits, read_topology
from des.base.command import UsageError
from des.base.random_numbers import derive_seed
from des.compiled.eligibility import has_plain_transport
from des.dynamics import DYNAMICS
from des.plan.replacement import Replacement
from des.training.background import beside_jobs
from des.world.files.load_files import read_loads
from scenarios.study.targets.world_file import suite_world_of
from scenarios.suites import LoadLaw, SuiteWorld
from scenarios.suites.laws import LAWS
from scenarios.suites.world import LEAST_ITERATIONS
from scenarios.train.east_west.config import HiPpoConfig
from scenarios.train.training_config import PROG

OWN, CONGESTED = "own law", "congestion and load"
"""Blocks of the table: the world as its file says, and links and load as in the suite ``hard``."""

Use = Literal["validation", "evaluation"]
"""Use of draws; those of a training are drawn from generators of their own."""

_STREAMS: Mapping[Use, int] = {"validation": 0x7A11, "evaluation": 0xE7A1}
_LIKE = 2  # stream of the worlds around the named one
_COMMON, _EACH, _PRICE = math.log(1.5), math.log(1.15), math.log(2.0)


def draw_seeds(use: Use, seed: int, num: int) -> list[int]:
    """Return the seeds of the draws for a use; no use shares its stream with another one."""
    return [int(derive_seed(seed, index, _STREAMS[use])) >> 2 for index in range(num)]


def named_worlds(config: HiPpoConfig) -> dict[str, SuiteWorld]:
    """Return the world that the flags name, by block: `OWN` and `CONGESTED`.

    In the first one links move by the law of the world and domains compute at their own speed. In
    the second one links jam and fail, and speeds are within ±20 %, redrawn every epoch.

    Raises
    ------
    ValueError
        If a file or name is wrong, no plan of the job fits, two domains have no link of their own,
        links are shared or wait for each other, there are too many domains, or the law cannot be
        drawn.
    """
    topology, workload = _network_and_job(config)
    _require_trainable(config, topology)
    law = topology.dynamics
    world = suite_world_of(config.network, topology, workload)
    world = _timed(config, world)
    if isinstance(law, UniformLaw) and law.update_interval_s is None:
        law = replace(law, update_interval_s=world.epoch_s)
    still = LoadLaw(low_factor=1.0, high_factor=1.0)
    found = {
        OWN: _moving(world, law, "own", still),
        CONGESTED: _moving(world, LAWS["markov_fast"](world.epoch_s), "markov_fast", world.load),
    }
    for one in found.values():
        freeze_topology(one, 0, one.num_epochs - 1)
    return found


def _network_and_job(config: HiPpoConfig) -> tuple[Topology, Workload]:
    topology = read_topology(config.network)
    if config.dynamics is not None:
        topology = replace(topology, dynamics=DYNAMICS[config.dynamics])
    if config.loads is not None:
        topology = beside_jobs(topology, read_loads(config.loads, topology))
    workload = config.workload(config.microbatches)
    check_job_fits(topology, workload)
    return topology, workload


def _require_trainable(config: HiPpoConfig, topology: Topology) -> None:
    """Refuse networks whose plans cannot be judged quickly, or that the policy cannot see."""
    if topology.num_domains > MOST_DOMAINS:
        raise UsageError(
            f"{PROG}: network {config.network} must have at most {MOST_DOMAINS} domains, got "
            f"{topology.num_domains}"
        )
    topology.require_no_limits(f"{PROG}: network {config.network}")
    if not has_plain_transport(topology):
        raise UsageError(
            f"{PROG}: network {config.network} must have transport.sharing fifo, endpoints "
            f"overlapped and links of two ways, got {topology.transport}; --policy flat trains on "
            "others"
        )


def _timed(config: HiPpoConfig, world: SuiteWorld) -> SuiteWorld:
    """The world with epochs and prices of moves as the flags say."""
    iteration_s = world.epoch_s / world.iterations_per_epoch
    epoch_s = world.epoch_s if config.epoch_s is None else config.epoch_s
    num_iterations = int(epoch_s / iteration_s)
    if num_iterations < LEAST_ITERATIONS:
        raise UsageError(
            f"{PROG}: epoch_s must be at least {LEAST_ITERATIONS} iterations, "
            f"{LEAST_ITERATIONS * iteration_s:.1f} s, got {epoch_s!r}"
        )
    return replace(
        world,
        epoch_s=epoch_s,
        iterations_per_epoch=num_iterations,
        num_epochs=config.num_epochs,
        replacement=Replacement(restart_s=config.restart_s, pays_bytes=config.pays_bytes),
    )


def _moving(world: SuiteWorld, law: Law, name: str, load: LoadLaw) -> SuiteWorld:
    topology = replace(world.topology, dynamics=law)
    return replace(world, name=f"{world.name}-{name}", topology=topology, law=name, load=load)


@dataclass(frozen=True, kw_only=True)
class WorldsAround:
    """Worlds to train on: the named ones in turn, and every other time one like them.

    In those all bandwidths are up to 1.5 times as high or as low, each link and domain up to 1.15
    times, latencies too, and a restart takes up to twice or half as long.
    """

    named: tuple[SuiteWorld, ...]

    def __repr__(self) -> str:
        told = ", ".join(f"{one.law} {one.digest[:12]}" for one in self.named)
        return f"worlds around {told}"

    def __call__(self, index: int, seed: int) -> SuiteWorld:
        """Return the world of an index and a seed."""
        turn, place = divmod(index, len(self.named))
        world = self.named[place]
        if turn % 2 == 0:
            return world
        rng = np.random.default_rng([seed, index, _LIKE])
        factor = float(np.exp(rng.uniform(-_PRICE, _PRICE)))
        replacement = replace(world.replacement, restart_s=factor * world.replacement.restart_s)
        return replace(
            world,
            name=f"{world.name}-like-{index}",
            topology=_like(world.topology, world.load.high_factor, rng),
            replacement=replacement,
        )


def _like(topology: Topology, most_factor: float, rng: np.random.Generator) -> Topology:
    """A network with other figures of links and domains."""
    num_links, common = len(topology.links), rng.uniform(-_COMMON, _COMMON)
    bandwidths = np.exp(common + rng.uniform(-_EACH, _EACH, num_links)).tolist()
    latencies = np.exp(rng.uniform(-_EACH, _EACH, num_links)).tolist()
    speeds = np.exp(rng.uniform(-_EACH, _EACH, topology.num_domains)).tolist()
    links = tuple(
        replace(
            link,
            bandwidth_bytes_per_s=bandwidth * link.bandwidth_bytes_per_s,
            latency_s=latency * link.latency_s,
        )
        for link, bandwidth, latency in zip(topology.links, bandwidths, latencies, strict=True)
    )
    domains = tuple(
        replace(
            domain,
            attainable_fraction=min(1.0 / most_factor, speed * domain.attainable_fraction),
        )
        for domain, speed in zip(topology.domains, speeds, strict=True)
    )
    return replace(topology, domains=domains, links=links)
