"""Candidates as whole plans: the best of each kind with layers moved, then simulated."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from agents.decision.families import Family
from agents.search.bound_rows import BoundRow, kind_of_chains, row_of_candidate
from agents.search.bounds import any_schedule_s
from agents.search.candidates import Candidate
from agents.search.schedule_choice import unpaced_schedules
from agents.search.search import PlanRequest
from agents.search.workspace import Workspace

_MOST_POLISHED = 8
"""Candidates of a kind whose layers are moved by times of whole iterations: where sends block, that
gains up to a tenth, so a later one may become the best."""

_MOST_EXACT = 8
"""Candidates of a kind that are simulated as whole plans."""

FAR = 1.1
"""Copies whose estimate is above this multiple of the best are no better: estimates leave that."""

_ROUNDING = 1e-9
"""Share by which times that are equal but for rounding may differ."""

_MOST_REFINED = 8
"""Best plans of a kind that are tried with schedules made for each of them."""

_MOST_PASSES = 4000
"""Most microbatches times stages of plans for which such schedules are made unasked."""


def rows_of_groups(
    request: PlanRequest,
    workspace: Workspace,
    groups: Sequence[Sequence[Candidate]],
    refusals: list[str],
    *,
    kept: BoundRow | None,
    is_time_alone: bool,
    is_short: bool,
) -> list[BoundRow]:
    """Rows of the best candidates of each group that the trainer runs and that fit, in its order.

    ``is_short``: those that may be the best of all, and after them these under schedules that are
    made for a plan each; ``refusals`` are why others do not fit.
    """
    is_short = is_short and not unpaced_alone(request)
    known_s = [kept.figures.step_s if is_short and kept is not None else math.inf]
    rows, made, said = dict[int, list[BoundRow]](), list[BoundRow](), [list[str]() for _ in groups]
    for at in sorted(range(len(groups)), key=lambda at: _first_s(groups[at])):
        rows[at], tried = [], set[tuple[object, ...]]()
        for row in _exact_rows(
            *(request, workspace, groups[at], said[at]),
            kept=kept,
            is_time_alone=is_time_alone,
            known_s=known_s,
        ):
            rows[at].append(row)
            if is_short:
                known_s[0] = min(known_s[0], row.figures.step_s)
                made += _make_for(request, workspace, row, tried, known_s[0])
                known_s[0] = min([known_s[0], *(one.figures.step_s for one in made)])
    refusals += [text for own in said for text in own]
    return [row for at in range(len(groups)) for row in rows[at]] + made


def refine_rows(
    request: PlanRequest, workspace: Workspace, rows: list[BoundRow], *, is_time_alone: bool
) -> list[BoundRow]:
    """The rows, and the best ones under schedules that are made for a plan each.

    Where all schedules of the request are of that kind, the rows of others are left out. Where time
    alone counts, no schedule is made for a plan that takes longer under any than the best of its
    kind.
    """
    found = [] if unpaced_alone(request) else list(rows)
    tried: dict[Family, set[tuple[object, ...]]] = {}
    for row in sorted(rows, key=lambda one: one.figures.step_s):
        of_kind = (one.figures.step_s for one in found if one.kind == row.kind)
        best_s = min(of_kind, default=math.inf) if is_time_alone else math.inf
        found += _make_for(request, workspace, row, tried.setdefault(row.kind, set()), best_s)
    return found


def _make_for(
    request: PlanRequest,
    workspace: Workspace,
    row: BoundRow,
    tried: set[tuple[object, ...]],
    best_s: float,
) -> list[BoundRow]:
    """Rows under schedules that are made for the plan of a row, if one can be below a time."""
    own = row.candidate
    assert isinstance(own, Candidate), "copies that differ come later"
    layers = _layers_key(own)
    if layers in tried or len(tried) >= _MOST_REFINED:
        return []
    tried.add(layers)
    if not (_has_made(request, workspace, own) and any_schedule_s(workspace, own) < best_s):
        return []
    names = unpaced_schedules(request.trainer, request.schedules)
    better = (row_of_candidate(request, _under(request, own, name)) for name in names)
    return [one for one in better if isinstance(one, BoundRow)]


def _has_made(request: PlanRequest, workspace: Workspace, candidate: Candidate) -> bool:
    """Whether schedules are made for a plan: not for long ones unasked."""
    passes = candidate.num_workers * workspace.num_microbatches(candidate.setting)
    is_short = unpaced_alone(request) or passes <= _MOST_PASSES
    return candidate.setting.num_chunks == 1 and is_short


def unpaced_alone(request: PlanRequest) -> bool:
    """Whether all schedules of a request are made for one plan each."""
    names = unpaced_schedules(request.trainer, request.schedules)
    return bool(request.schedules) and set(request.schedules) <= set(names)


def _under(request: PlanRequest, candidate: Candidate, schedule: str) -> Candidate:
    """The candidate under another schedule."""
    is_blocking = request.trainer.sends_under(schedule) == "blocking"
    setting = replace(candidate.setting, schedule=schedule, is_blocking=is_blocking)
    return replace(candidate, setting=setting)


def _first_s(candidates: Sequence[Candidate]) -> float:
    return candidates[0].estimate_s if candidates else math.inf


def _exact_rows(
    request: PlanRequest,
    workspace: Workspace,
    candidates: Sequence[Candidate],
    refusals: list[str],
    *,
    kept: BoundRow | None,
    is_time_alone: bool,
    known_s: Sequence[float],
) -> Iterator[BoundRow]:
    """Rows of the best candidates that the trainer runs and that fit; notes why others do not.

    ``known_s`` is the time of a plan of any kind, above which no plan is of use, as it is by then.
    Where time alone counts, those that are estimated to take longer than a row are left out, but
    for the few that schedules made for one plan each are tried with and may be of use under.
    """
    num_seen = 0
    least = _MOST_REFINED if unpaced_schedules(request.trainer, request.schedules) else 0
    candidates = list({_key_of(one): one for one in reversed(candidates)}.values())[::-1]
    polished = [
        workspace.polished(one) if at < _MOST_POLISHED else one for at, one in enumerate(candidates)
    ]
    quickest_s: dict[Family, float] = {}
    for at in sorted(range(len(candidates)), key=lambda at: polished[at].estimate_s):
        if num_seen == _MOST_EXACT:
            break
        kind = kind_of_chains(candidates[at].chains)
        slack = FAR if len(candidates[at].chains) > 1 else 1.0
        limit_s = min(quickest_s.get(kind, math.inf), slack * known_s[0]) * (1.0 + _ROUNDING)
        if is_time_alone and polished[at].estimate_s > limit_s:
            if num_seen >= least:
                continue
            if not _may_be_made(request, workspace, (polished[at], candidates[at]), known_s[0]):
                num_seen += 1
                continue
        for one in dict.fromkeys((polished[at], candidates[at])):
            row = _known_row(request, one, kept) or row_of_candidate(request, one)
            if isinstance(row, BoundRow):
                num_seen += 1
                quickest_s[kind] = min(row.figures.step_s, quickest_s.get(kind, math.inf))
                yield row
                break
            refusals.append(row)


def _may_be_made(
    request: PlanRequest,
    workspace: Workspace,
    candidates: Sequence[Candidate],
    known_s: float,
) -> bool:
    """Whether one may be quicker than what is known under a schedule made for it."""
    return known_s == math.inf or any(
        _has_made(request, workspace, one) and any_schedule_s(workspace, one) < known_s
        for one in candidates
    )


def _known_row(
    request: PlanRequest, candidate: Candidate, kept: BoundRow | None
) -> BoundRow | None:
    """Row of the plan in force, which is not simulated again, if the candidate is that plan."""
    if kept is None or candidate.plan(request.topology) != kept.bound.plan:
        return None
    is_same = candidate.setting.workload(request.job) == kept.bound.workload
    return replace(kept, candidate=candidate) if is_same else None


def _layers_key(candidate: Candidate) -> tuple[object, ...]:
    """All of a candidate that tells its plan but the schedule."""
    setting = candidate.setting
    sizes = setting.degrees, setting.microbatch_size, setting.recomputation
    return *sizes, candidate.chains, candidate.splits, candidate.stage_layers


def _key_of(candidate: Candidate) -> tuple[object, ...]:
    """All of a candidate that tells its plan; a pipeline of one stage is alike in any order."""
    setting = candidate.setting
    order = (setting.schedule, setting.group_factor) if candidate.num_workers > 1 else ()
    return *_layers_key(candidate), order
