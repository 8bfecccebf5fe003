"""Sets of sites with step times: drawn, searched for bound plans, or read from a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from agents.decision.training_job import TrainingJob
from agents.replanning.move_cost import STORAGE_BYTES_PER_S, checkpoint_bytes
from agents.search.bound_search import search_bound
from agents.search.search import PlanRequest
from agents.search.shared_parts import SharedParts
from agents.trainers.table import trainer_named
from des import Topology, read_topology
from des.spot.offers import Offers, StateSizes
from des.world.lost_parts import with_domains
from des.worlds.generator import PlaneWorlds
from scenarios.reproduce.cases import CaseForm, Count, PositiveNumber

NUM_SITES = 5
MODELS = ("llama2_70b", "gpt3_175b")
TOKENS_PER_STEP = 4 * 2**20
_GPUS = (48, 64, 80, 96)
_GPUS_PER_SERVER = 8
RESTART_S = 120.0
"""Time of a restart without reading, as in the setting of the trial. [s]"""
USD_PER_GPU_HOUR = 1.5
"""Price of an A100 of 80 GB on the spot market: an assumption. [USD/h]"""
LOSSES_PER_H = 0.4
"""Losses of a held site at age 1 to 2 h in the traces of 2023, for the period of checkpoints.
[1/h]"""

Shares = Annotated[tuple[Annotated[float, Field(ge=0, le=1)], ...], Field(min_length=1)]


class SiteSets(CaseForm):
    """A job on some sites: the step time of each set of them, and the state each site has in it.

    Set ``n``, from 1 on, holds site ``i`` where bit ``i`` of ``n`` is set.
    """

    name: str
    model: str
    gpus: tuple[Count, ...]
    gbit_per_s: tuple[tuple[float, ...], ...]
    state_bytes: PositiveNumber
    tokens_per_step: PositiveNumber
    step_s: tuple[PositiveNumber, ...]
    shares: tuple[Shares, ...]

    @model_validator(mode="after")
    def _sizes_agree(self) -> Self:
        count = len(self.gpus)
        sizes = {"gbit_per_s": count, "step_s": 2**count - 1, "shares": 2**count - 1}
        for field, size in sizes.items():
            if (found := len(getattr(self, field))) != size:
                raise ValueError(f"{field} must have {size} entries for {count} sites, got {found}")
        return self

    def offers(self, num_sites: int = NUM_SITES) -> Offers:
        """Offers of all sets of the first sites; sites that a plan leaves out are not needed."""
        sets = sets_of(num_sites)
        gpus = np.array(self.gpus[:num_sites])
        shares = np.array(self.shares[: len(sets)])[:, :num_sites]
        sizes = StateSizes(
            state_bytes=self.state_bytes,
            storage_bytes_per_s=gpus / _GPUS_PER_SERVER * STORAGE_BYTES_PER_S,
            link_bytes_per_s=np.array(self.gbit_per_s)[:num_sites, :num_sites] * 1e9 / 8,
            restart_s=RESTART_S,
        )
        return Offers.of_sets(
            ["+".join(str(site) for site in np.flatnonzero(row)) for row in sets],
            shares > 0,
            self.tokens_per_step / np.array(self.step_s[: len(sets)]),
            shares,
            sizes,
            gpus=gpus,
            usd_per_gpu_s=np.full(num_sites, USD_PER_GPU_HOUR / 3600),
            losses_per_s=LOSSES_PER_H / 3600,
        )


def sets_of(num_sites: int) -> np.ndarray:
    """All sets of sites by their numbers, (2**S - 1, S)."""
    numbers = np.arange(1, 2**num_sites)
    return (numbers[:, np.newaxis] >> np.arange(num_sites) & 1).astype(np.bool_)


def draw_sites(seed: int) -> Topology:
    """Draw sites of 48 to 96 A100 on servers of eight, with links as `PlaneWorlds` draws them."""
    rng = np.random.default_rng(np.random.SeedSequence((seed, 47)))
    plane = PlaneWorlds(num_domains=NUM_SITES).draw(rng)
    model = read_topology("two_sites_of_nodes").domains[0]
    domains = [
        replace(model, name=name, num_gpus=int(rng.choice(_GPUS))) for name in plane.index_of
    ]
    return Topology.of(domains, plane.links)


def search_sets(seed: int, model: str) -> SiteSets:
    """Search the best plan of Megatron-LM, one site or a pipeline, for every set of drawn sites.

    Raises
    ------
    InfeasiblePlacementError
        If the model fits into no plan of some set.
    """
    topology = draw_sites(seed)
    shared = SharedParts()
    found = [_search(topology, row, model, shared) for row in sets_of(NUM_SITES)]
    gbit_per_s = np.zeros((NUM_SITES, NUM_SITES))
    for link in topology.links:
        ends = topology.index_of[link.source], topology.index_of[link.target]
        gbit_per_s[ends] = round(link.bandwidth_bytes_per_s * 8e-9, 3)
    return SiteSets(
        name=f"{model}-{seed}",
        model=model,
        gpus=tuple(domain.num_gpus for domain in topology.domains),
        gbit_per_s=tuple(map(tuple, gbit_per_s.tolist())),
        state_bytes=checkpoint_bytes(_job(model).workload(1, "flash")),
        tokens_per_step=_job(model).tokens_per_step,
        step_s=tuple(round(step_s, 3) for step_s, _ in found),
        shares=tuple(shares for _, shares in found),
    )


def _job(model: str) -> TrainingJob:
    return TrainingJob.of_tokens(model, TOKENS_PER_STEP)


def _search(
    topology: Topology, row: np.ndarray, model: str, shared: SharedParts
) -> tuple[float, tuple[float, ...]]:
    """Time of a step [s], and the part of the layers that each site has."""
    names = [name for name, site in topology.index_of.items() if row[site]]
    request = PlanRequest(
        topology=with_domains(topology, names),
        job=_job(model),
        trainer=trainer_named("megatron"),
        token_factor=1.0,
        families=("single", "pipeline"),
    )
    best = search_bound(request, shared=shared, is_best_alone=True).best
    layers = best.bound.plan.placement.domain_of_layer
    held = [names[layer] for layer in layers]
    return best.figures.step_s, tuple(
        round(held.count(name) / len(layers), 4) for name in topology.index_of
    )


def searched_cases(num_draws: int) -> Iterator[SiteSets]:
    """Search the sets of some draws, for each of `MODELS`."""
    for model in MODELS:
        for seed in range(num_draws):
            yield search_sets(seed, model)
