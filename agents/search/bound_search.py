"""Search of bound plans: the best of each kind, simulated as the trainer runs it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from agents.decision.bound_plan import BoundPlan
from agents.decision.families import Family
from agents.decision.token_prices import is_never_published
from agents.search.bound_rows import (
    BoundRow,
    kind_of_mode,
    row_in_force,
    row_of_candidate,
    row_of_plan,
)
from agents.search.bounds import work_bound_s
from agents.search.candidates import Candidate
from agents.search.chains import Chain
from agents.search.copy_search import CopySetSearch
from agents.search.copy_sets import CopySet
from agents.search.exact_rows import FAR, refine_rows, rows_of_groups, unpaced_alone
from agents.search.exchanges import other_exchanges
from agents.search.known_pipelines import NearBest
from agents.search.misfits import least_shortfall
from agents.search.objective import PlanObjective
from agents.search.outer_modes import outer_modes
from agents.search.search import PlanRequest, bound_settings, candidates_of, settings_of
from agents.search.setting_table import SettingTable
from agents.search.settings import BoundSetting
from agents.search.shared_parts import SharedParts
from agents.search.workspace import Workspace
from des import EVERY_STEP, InfeasiblePlacementError

_SEEN = 1.3
"""Settings count as seen up to this multiple of the best step."""

_NEAR = 1.3
"""Copies that exchange gradients in every step are looked for up to this multiple of the best.

Where a kind that is not the best is of no use, `exact_rows.FAR` is enough.
"""


@dataclass(frozen=True, kw_only=True)
class BoundFound:
    """Result of a search: the best row first, then the best of every other kind.

    ``conditional`` are quicker plans whose price in tokens is beyond what is published;
    ``in_force`` is the row of the plan in force. ``table`` has all settings that were searched;
    pipelines and copies at up to `_SEEN` times the best step were ``seen`` under some. The best
    ``pipelines`` are in order, the quickest first.
    """

    rows: tuple[BoundRow, ...]
    num_judged: int
    conditional: tuple[BoundRow, ...] = ()
    in_force: BoundRow | None = None
    table: SettingTable = field(compare=False, repr=False)
    seen: tuple[BoundSetting, ...]
    pipelines: tuple[Candidate, ...] = field(compare=False, repr=False)

    @property
    def best(self) -> BoundRow:
        """The best plan."""
        return self.rows[0]

    @property
    def near(self) -> NearBest:
        """The pipelines, and settings seen and those that differ from one by the size of groups."""
        return NearBest(
            topology=self.best.bound.topology,
            settings=self.table.near(self.seen),
            pipelines=self.pipelines,
        )


def search_bound(
    request: PlanRequest,
    objective: PlanObjective | None = None,
    *,
    in_force: BoundPlan | None = None,
    among: Sequence[Chain] | None = None,
    shared: SharedParts | None = None,
    is_best_alone: bool = False,
    near: NearBest | None = None,
) -> BoundFound:
    """Search the plans that a trainer can run, and rank them.

    Parameters
    ----------
    in_force
        A plan of the job that is ranked with those that are found, if it can run.
    among
        Pipelines of these chains of sites alone, as `candidates_of` takes them; None: all plans.
    shared
        What searches of other worlds, jobs or trainers have worked out; None: all is worked out.
    is_best_alone
        Leave out what is never the best: plans whose price in tokens is beyond what is published,
        and, where time alone counts, single sites of which none is as quick as the best pipeline.
    near
        What another search has found where one thing was otherwise, see `candidates_of`. For time
        alone.

    Raises
    ------
    InfeasiblePlacementError
        If none fits, naming the least memory that is missing on a GPU.
    ValueError
        If none keeps the limits of the objective, or a cost is asked for without prices.
    """
    aim = objective or PlanObjective()
    aim.require_prices(request.topology)
    workspace = _workspace(request, shared)
    kept = None if in_force is None else row_in_force(request, in_force)
    is_time_alone = aim.is_time_alone and aim.most_s == math.inf
    is_short = is_best_alone and is_time_alone
    for leaves_single in (True, False) if is_short else (False,):
        found = candidates_of(
            request,
            workspace,
            by_sites=not aim.is_time_alone,
            among=among,
            is_best_alone=is_short,
            leaves_single=leaves_single,
            near=near,
        )
        refusals: list[str] = []
        rows = rows_of_groups(
            *(request, workspace, found.groups, refusals),
            kept=kept,
            is_time_alone=is_time_alone,
            is_short=is_short,
        )
        if not is_short or unpaced_alone(request):
            rows = refine_rows(request, workspace, rows, is_time_alone=is_time_alone)
        rows += [] if kept is None else [kept]
        quickest_s = min((row.figures.step_s for row in rows), default=math.inf)
        if found.alone_s == math.inf or found.alone_s > quickest_s:
            break
    before, is_apart = workspace.num_judged[0], _is_of_copies(request)
    if among is None and (rows or is_apart):
        is_limited = min(aim.most_s, aim.most_usd) < math.inf  # a refusal names the quickest row
        is_priced = is_best_alone and not is_limited
        limit_s = math.inf if request.every_family else _limit_s(aim, rows)
        most = FAR if is_short else _NEAR
        rows += _rows_of_sets(request, workspace, limit_s, most, is_priced=is_priced)
    rows = [row for row in rows if row.kind in request.families]
    if not rows and request.settings is not None:
        raise InfeasiblePlacementError("no plan fits with the settings to choose from")
    if not rows:
        every = list(bound_settings(request, fits=False))
        said = refusals[0] if refusals else least_shortfall(workspace, every, request.trainer.name)
        raise InfeasiblePlacementError(said)
    if request.trainer.chooses_ways:
        rows += _exchanged(request, workspace, best_of_kinds(aim, rows))
    best = best_of_kinds(aim, _allowed(aim, rows))
    beyond = [row for row in rows if row.condition and aim.allows(row.figures)]
    return BoundFound(
        rows=best,
        num_judged=found.num_judged + workspace.num_judged[0] - before,
        conditional=tuple(
            row for row in best_of_kinds(aim, beyond) if row.figures.step_s < best[0].figures.loss_s
        ),
        in_force=kept,
        table=settings_of(request, workspace),
        seen=_seen(workspace, found.groups, _SEEN * best[0].figures.step_s),
        pipelines=_pipelines_of(workspace, found.groups),
    )


def _seen(
    workspace: Workspace, groups: Sequence[Sequence[Candidate]], most_s: float
) -> tuple[BoundSetting, ...]:
    """Settings of pipelines and copies found up to a time."""
    found = [setting for setting, time_s in workspace.seen_s.items() if time_s <= most_s]
    copies = (one for group in groups for one in group if len(one.chains) > 1)
    return (*found, *(one.setting for one in copies if one.estimate_s <= most_s))


def _pipelines_of(
    workspace: Workspace, groups: Sequence[Sequence[Candidate]]
) -> tuple[Candidate, ...]:
    """Candidates of one pipeline, and those that are not improved, the quickest first."""
    alone = (one for group in groups for one in group if len(one.chains) == 1)
    return tuple(sorted((*alone, *workspace.surveyed), key=lambda one: one.estimate_s))


def _is_of_copies(request: PlanRequest) -> bool:
    """Whether copies alone are asked for."""
    return {"single", "pipeline"}.isdisjoint(request.families)


def _allowed(aim: PlanObjective, rows: Sequence[BoundRow]) -> list[BoundRow]:
    """Rows that keep the limits and have a price in tokens."""
    found = [row for row in rows if aim.allows(row.figures) and not row.condition]
    if not found:
        quickest = min(row.figures.step_s for row in rows)
        cheapest = min((row.figures.usd for row in rows if row.figures.usd is not None), default=0)
        raise ValueError(
            f"at_most: must be at least {quickest:.4g} s, the quickest step, and {cheapest:.4g} "
            "USD, the cheapest one; no plan found keeps it"
        )
    return found


def proven_bound_s(request: PlanRequest, shared: SharedParts | None = None) -> float:
    """Bound of `work_bound_s` for all plans that a search chooses from. [s]"""
    trainer = request.trainer
    is_common = trainer.equal_degrees and not outer_modes(trainer)
    workspace = _workspace(request, shared)
    return work_bound_s(workspace, settings_of(request, workspace).settings, is_common=is_common)


def _workspace(request: PlanRequest, shared: SharedParts | None) -> Workspace:
    return Workspace(
        topology=request.topology,
        job=request.job,
        corrections=request.corrections,
        shared=shared or SharedParts(),
    )


def _limit_s(aim: PlanObjective, rows: Sequence[BoundRow]) -> float:
    """Time above which copies that change the training are of no use. [s]"""
    steps_s = [row.figures.step_s for row in rows if aim.is_time_alone]
    return min(steps_s, default=math.inf)


def best_of_kinds(aim: PlanObjective, rows: Sequence[BoundRow]) -> tuple[BoundRow, ...]:
    """The best row of each kind, the best first."""
    best_of: dict[Family, BoundRow] = {}
    for position in aim.ranking([row.figures for row in rows]):
        best_of.setdefault(rows[position].kind, rows[position])
    return tuple(best_of.values())


def _rows_of_sets(
    request: PlanRequest,
    workspace: Workspace,
    limit_s: float,
    near: float,
    *,
    is_priced: bool,
) -> list[BoundRow]:
    """Rows of copies that differ: that seldom exchange, or whose stages and shares differ.

    The latter are looked for up to ``near`` times the limit. ``is_priced`` leaves out those whose
    price in tokens is beyond what is published.
    """
    trainer = request.trainer
    if request.topology.num_domains == 1 or not settings_of(request, workspace).settings:
        return []
    search = CopySetSearch(
        workspace=workspace,
        trainer=trainer,
        table=settings_of(request, workspace),
        limit_s=limit_s,
        token_factor=request.token_factor,
    )
    modes, workload = request.outer_modes, request.job.workload(1)
    modes = outer_modes(trainer) if modes is None else modes
    if is_priced and request.token_factor is None:
        modes = tuple(one for one in modes if not is_never_published(one, workload))
    kinds = request.families
    found = [search.sets(mode) for mode in modes if kind_of_mode(mode) in kinds]
    if not (trainer.equal_degrees or {"replicas", "hybrid"}.isdisjoint(kinds)):
        found.append(replace(search, limit_s=near * limit_s).sets(EVERY_STEP))
    return [row for sets in found for row in islice(_run(request, sets), 1)]


def _exchanged(
    request: PlanRequest, workspace: Workspace, rows: Sequence[BoundRow]
) -> Iterator[BoundRow]:
    """Rows of the copies of some rows that exchange in other ways."""
    for row in rows:
        for plan in other_exchanges(workspace.tables, row.bound.workload, row.bound.plan):
            if isinstance(found := row_of_plan(request, row, plan), BoundRow):
                yield found


def _run(request: PlanRequest, sets: Sequence[CopySet]) -> Iterator[BoundRow]:
    """Rows of the sets that the trainer runs and that fit, in their order."""
    rows = (row_of_candidate(request, one) for one in sets)
    return (row for row in rows if isinstance(row, BoundRow))
