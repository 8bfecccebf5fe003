"""Search for the quickest plans that a trainer runs: settings, then chains, then splits of layers.

Settings (degrees, microbatches, recomputation, schedule, copies) are surveyed over chains of sites
by level splits, quickest bounds first; the best are improved layer by layer; what is left is
simulated as a whole plan, and of equal times the one that needs least memory is taken.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from agents.decision.families import EVERY_FAMILY, Family
from agents.decision.token_prices import require_token_factor
from agents.decision.trained_workload import whole_shape
from agents.decision.training_job import TrainingJob
from agents.search.candidates import Candidate
from agents.search.chain_choice import chains_of, most_sites
from agents.search.chains import (
    MOST_ENUMERATED,
    Chain,
)
from agents.search.copies import copies_of
from agents.search.known_pipelines import NearBest
from agents.search.schedule_choice import schedules_of
from agents.search.setting_table import SettingTable
from agents.search.settings import (
    BoundSetting,
    Degrees,
    degrees_of,
    has_room,
    is_measured_everywhere,
    most_context_of,
)
from agents.search.surveys import improved, single_sites, surveyed
from agents.search.walks import walk_again, walk_chains
from agents.search.workspace import Workspace
from agents.trainers.trainer import Trainer
from des import NO_CORRECTIONS, Corrections, Topology, Workload
from des.job.transformer import GradientPrecision, Recomputation
from des.plan.parallelism import Sharding
from des.plan.synchronisation import Synchronisation

MICROBATCH_SIZES = (1, 2, 4, 8)
"""Sequences of a microbatch on a data rank to choose from."""

_NEAR, _BEST = 1.3, 1.1
"""Copies of equal stages are looked for up to this multiple of the best pipeline.

The second counts where a kind that is not the best is of no use: estimates leave that much.
"""


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """World, job and trainer of a search.

    Attributes
    ----------
    topology
        Links standing still at their present figures.
    trainer
        One whose plans are bound to GPUs.
    schedules
        Those to choose from; empty: all of the trainer.
    token_factor
        Tokens that changed training needs over those of unchanged training, at least 1; None: by
        published losses, and plans beyond these are named apart.
    recomputations, families
        What to choose from, of what the trainer has; no recomputations: those of the job.
    every_family
        Whether copies of the model are looked for however far from the best.
    outer_modes
        Ways to synchronise seldom to choose from; None: those of the trainer, see `outer_modes`.
    settings
        Degrees, microbatches and schedules to choose from; None: all of `bound_settings`.
    workload
        The job in the microbatches, recomputation and gradients that all plans have; None: those
        are chosen.
    """

    topology: Topology
    job: TrainingJob
    trainer: Trainer
    corrections: Corrections = NO_CORRECTIONS
    schedules: tuple[str, ...] = ()
    microbatch_sizes: tuple[int, ...] = MICROBATCH_SIZES
    token_factor: float | None = None
    recomputations: tuple[Recomputation, ...] = ()
    families: tuple[Family, ...] = EVERY_FAMILY
    every_family: bool = False
    outer_modes: tuple[Synchronisation, ...] | None = None
    settings: SettingTable | None = None
    workload: Workload | None = None

    def __post_init__(self) -> None:
        self.trainer.require_schedules(self.schedules)
        require_token_factor("request", self.token_factor)


@dataclass(frozen=True, kw_only=True)
class FoundCandidates:
    """Candidates in groups, one site, several sites and copies, each the quickest first.

    ``num_judged`` pipelines were simulated. Single sites were left out where ``alone_s`` is finite,
    as no plan of one is quicker. [s]
    """

    groups: tuple[tuple[Candidate, ...], ...]
    num_judged: int
    alone_s: float = math.inf


def candidates_of(
    request: PlanRequest,
    workspace: Workspace,
    *,
    by_sites: bool = False,
    among: Sequence[Chain] | None = None,
    is_best_alone: bool = False,
    leaves_single: bool = False,
    near: NearBest | None = None,
) -> FoundCandidates:
    """Return the best candidates of each kind by their estimates.

    Parameters
    ----------
    by_sites
        Search every set of sites by itself, for objectives other than time.
    among
        Pipelines of these chains alone, as they are or the other way round; None: all candidates.
    is_best_alone
        Leave out copies that are unlikely to be the best.
    leaves_single
        Leave single sites out where none is as quick as the best pipeline of several.
    near
        What another search has found where one thing was otherwise: its pipelines are candidates,
        beside which others count, and of many sites chains are those near its best.
    """
    table, alone_s = settings_of(request, workspace), math.inf
    several = among
    if several is None:
        has_pipelines, is_thorough = "pipeline" in request.families, request.trainer.is_ideal
        several = chains_of(workspace, table, is_thorough=is_thorough) if has_pipelines else []
    parts = _apart(several, by_sites=by_sites)
    is_large = among is not None or request.topology.num_domains > MOST_ENUMERATED
    walks = is_large and among is None and not by_sites
    groups = [_group(request, workspace, own, near, walks=walks, turns=is_large) for own in parts]
    if among is not None:
        return FoundCandidates(groups=tuple(groups), num_judged=workspace.num_judged[0])
    best_s = min((group[0].estimate_s for group in groups if group), default=math.inf)
    if leaves_single and best_s < math.inf:
        alone_s = workspace.foreseen(table, table.families).alone_s
    if "single" in request.families and not best_s < alone_s < math.inf:
        alone_s, sites = math.inf, [(site,) for site in range(request.topology.num_domains)]
        single = [single_sites(workspace, table, own) for own in _apart(sites, by_sites=by_sites)]
        groups = [*single, *groups]
        best_s = min((group[0].estimate_s for group in groups if group), default=math.inf)
    copies = list[Candidate]()
    if not {"replicas", "hybrid"}.isdisjoint(request.families):
        is_far = by_sites or request.every_family
        most = _BEST if is_best_alone else _NEAR
        copies = copies_of(workspace, table, math.inf if is_far else most * best_s)
    return FoundCandidates(
        groups=(*groups, tuple(copies)), num_judged=workspace.num_judged[0], alone_s=alone_s
    )


def _group(
    request: PlanRequest,
    workspace: Workspace,
    chains: Sequence[Chain],
    near: NearBest | None,
    *,
    walks: bool,
    turns: bool,
) -> tuple[Candidate, ...]:
    """The best candidates of some chains, which may be changed or turned round."""
    table = settings_of(request, workspace)
    if len(chains[0]) == 1:
        return single_sites(workspace, table, chains)
    known = () if near is None else near.time_again(workspace)
    known_s = known[0].estimate_s if known else math.inf
    several = tuple(one for one in known if len(one.chains[0]) > 1)
    if walks and near is not None:
        chains = [
            *dict.fromkeys(
                (*near.first_left(workspace), *(one.chains[0] for one in several), *chains)
            )
        ]
    found = surveyed(workspace, table, chains, known_s)
    if walks and near is not None:
        found = walk_again(
            workspace, (*several, *found), near.first_left(workspace), most_sites(workspace)
        )
        return improved(workspace, found, turns=turns)
    if found and walks:
        found = walk_chains(workspace, found, most_sites(workspace))
    better = improved(workspace, found, turns=turns, known_s=known_s)
    own = {replace(one, estimate_s=0.0) for one in better}
    left = (one for one in several if replace(one, estimate_s=0.0) not in own)
    return (*better, *left)  # what is known takes no place of what only a search can improve


def _apart(chains: Sequence[Chain], *, by_sites: bool) -> list[list[Chain]]:
    """Chains of one site and of several apart, or of every set of sites."""
    groups: dict[object, list[Chain]] = {}
    for chain in chains:
        groups.setdefault(frozenset(chain) if by_sites else len(chain) > 1, []).append(chain)
    return list(groups.values())


def settings_of(request: PlanRequest, workspace: Workspace) -> SettingTable:
    """Return the settings of `bound_settings` as a table that searches share."""
    if request.settings is not None:
        return request.settings
    asked = request.trainer, request.schedules, request.microbatch_sizes, request.workload
    return workspace.shared.part(
        ("settings", workspace.tables.bare_number, asked),
        lambda: SettingTable(settings=tuple(bound_settings(request))),
    )


def bound_settings(request: PlanRequest, *, fits: bool = True) -> Iterator[BoundSetting]:
    """Settings of one pipeline that a trainer can run, those whose state fits into all sites."""
    trainer, asked, given = request.trainer, request.schedules, request.workload
    among = request.recomputations or request.job.recomputations
    recomputations = tuple(name for name in among if name in trainer.recomputations)
    if given is not None:
        recomputations = (whole_shape(given).recomputation,)
    precision = _gradient_precision(request)
    for degrees, size in _degrees_and_sizes(request, fits=fits):
        yield from _settings_with(trainer, asked, recomputations, (precision, degrees, size))


def _gradient_precision(request: PlanRequest) -> GradientPrecision:
    given = request.workload
    return request.trainer.gradient_precision if given is None else given.gradient_precision


@lru_cache(maxsize=4096)
def _settings_with(
    trainer: Trainer,
    asked: tuple[str, ...],
    recomputations: tuple[Recomputation, ...],
    sizes: tuple[GradientPrecision, Degrees, int],
) -> tuple[BoundSetting, ...]:
    """Settings of some gradients, degrees and sequences of a microbatch."""
    gradient_precision, degrees, size = sizes
    return tuple(
        BoundSetting(
            degrees=degrees,
            microbatch_size=size,
            recomputation=recomputation,
            gradient_precision=gradient_precision,
            schedule=schedule,
            num_chunks=chunks,
            group_factor=factor,
            is_blocking=is_blocking,
            is_even=not trainer.uneven_layers,
            whole_groups=trainer.whole_groups,
        )
        for recomputation in recomputations
        for schedule, chunks, factor, is_blocking in schedules_of(trainer, asked)
    )


def _degrees_and_sizes(request: PlanRequest, *, fits: bool) -> Iterator[tuple[Degrees, int]]:
    """Degrees and sequences of a microbatch; what profiles of layers have no times for is left out.

    Raises
    ------
    ValueError
        If profiles have times for nothing.
    """
    trainer, job, given = request.trainer, request.job, request.workload
    batch_size = None if given is None else whole_shape(given).batch_size
    sharding: Sharding = "optimiser" if "optimiser" in trainer.pipeline_sharding else "none"
    most = most_context_of(request.topology, job) if trainer.has_context else 1
    found, unmeasured = False, set()
    every = degrees_of(request.topology, job, sharding=sharding, most_context=most)
    for degrees in [Degrees(tensor=1, is_perfect=True)] if trainer.is_ideal else every:
        if fits and not has_room(request.topology, job, _gradient_precision(request), degrees):
            continue
        for size in request.microbatch_sizes:
            together = size * degrees.data
            if job.num_sequences % together or batch_size not in (None, together):
                continue
            if is_measured_everywhere(request.topology, job, degrees, size):
                found = True
                yield degrees, size
            else:
                unmeasured.add(f"{degrees.tensor} x {size}")
    if unmeasured and not found:
        raise ValueError(
            f"profiles: must have times at {job.sequence_length} tokens for one of these tensor "
            f"degrees x microbatch sizes: {', '.join(sorted(unmeasured))}; got none"
        )
