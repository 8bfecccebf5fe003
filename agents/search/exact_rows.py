"""Candidates as whole plans: the best of each kind with layers moved, then simulated."""

import math
from collections.abc import Sequence
from dataclasses import replace

from agents.decision.families import Family
from agents.search.bound_rows import BoundRow, kind_of_chains, row_of_candidate
from agents.search.candidates import Candidate
from agents.search.desk import SearchDesk
from agents.search.search import PlanRequest
from agents.search.settings import unpaced_schedules

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
    desk: SearchDesk,
    groups: Sequence[Sequence[Candidate]],
    refusals: list[str],
    *,
    kept: BoundRow | None,
    is_time_alone: bool,
    is_short: bool,
) -> list[BoundRow]:
    """Rows of the best candidates of each group that the trainer runs and that fit, in its order.

    ``is_short``: those that may be the best of all; ``refusals`` are why others do not fit.
    """
    is_short = is_short and not unpaced_schedules(request.trainer, request.schedules)
    known_s = kept.figures.step_s if is_short and kept is not None else math.inf
    rows, said = dict[int, list[BoundRow]](), [list[str]() for _ in groups]
    for at in sorted(range(len(groups)), key=lambda at: _first_s(groups[at])):
        rows[at] = _exact_rows(
            *(request, desk, groups[at], said[at]),
            kept=kept,
            is_time_alone=is_time_alone,
            known_s=known_s,
        )
        if is_short:
            known_s = min([known_s, *(row.figures.step_s for row in rows[at])])
    refusals += [text for own in said for text in own]
    return [row for at in range(len(groups)) for row in rows[at]]


def refined_rows(
    request: PlanRequest, desk: SearchDesk, rows: list[BoundRow], *, is_time_alone: bool
) -> list[BoundRow]:
    """The rows, and the best ones under schedules that are made for a plan each.

    Where all schedules of the request are of that kind, the rows of others are left out. Where time
    alone counts, no schedule is made for a plan of which a device computes for longer than the best
    of its kind takes.
    """
    names = unpaced_schedules(request.trainer, request.schedules)
    is_asked = bool(request.schedules) and set(request.schedules) <= set(names)
    found = [] if is_asked else list(rows)
    tried: dict[Family, set[tuple[object, ...]]] = {}
    for row in sorted(rows, key=lambda one: one.figures.step_s):
        own = row.candidate
        assert isinstance(own, Candidate), "copies that differ come later"
        setting, layers = own.setting, _layers_key(own)
        known = tried.setdefault(row.kind, set())
        if layers in known or len(known) >= _MOST_REFINED:
            continue
        known.add(layers)
        passes = own.num_workers * desk.num_microbatches(setting)
        if setting.num_chunks > 1 or not (is_asked or passes <= _MOST_PASSES):
            continue
        best_s = min(
            (one.figures.step_s for one in found if one.kind == row.kind), default=math.inf
        )
        is_bounded = is_time_alone and setting.pace.behind is None  # halves may take longer
        sites = request.topology.index_of.keys() & row.busy_s
        if is_bounded and not max(row.busy_s[name] for name in sites) < best_s:
            continue
        others = (_under(request, own, name) for name in names)
        better = (row_of_candidate(request, one) for one in others)
        found += [one for one in better if isinstance(one, BoundRow)]
    return found


def _under(request: PlanRequest, candidate: Candidate, schedule: str) -> Candidate:
    """The candidate under another schedule."""
    is_blocking = request.trainer.sends_under(schedule) == "blocking"
    setting = replace(candidate.setting, schedule=schedule, is_blocking=is_blocking)
    return replace(candidate, setting=setting)


def _first_s(candidates: Sequence[Candidate]) -> float:
    return candidates[0].estimate_s if candidates else math.inf


def _exact_rows(
    request: PlanRequest,
    desk: SearchDesk,
    candidates: Sequence[Candidate],
    refusals: list[str],
    *,
    kept: BoundRow | None,
    is_time_alone: bool,
    known_s: float = math.inf,
) -> list[BoundRow]:
    """Rows of the best candidates that the trainer runs and that fit; notes why others do not.

    ``known_s`` is the time of a plan of any kind, above which no plan is of use. Where time alone
    counts, those that are estimated to take longer than a row are left out, but for the few that
    schedules made for one plan each are tried with.
    """
    rows: list[BoundRow] = []
    least = _MOST_REFINED if unpaced_schedules(request.trainer, request.schedules) else 0
    candidates = list({_key_of(one): one for one in reversed(candidates)}.values())[::-1]
    polished = [
        desk.polished(one) if at < _MOST_POLISHED else one for at, one in enumerate(candidates)
    ]
    quickest_s: dict[Family, float] = {}
    for at in sorted(range(len(candidates)), key=lambda at: polished[at].estimate_s):
        if len(rows) == _MOST_EXACT:
            break
        kind = kind_of_chains(candidates[at].chains)
        slack = FAR if len(candidates[at].chains) > 1 else 1.0
        limit_s = min(quickest_s.get(kind, math.inf), slack * known_s) * (1.0 + _ROUNDING)
        if is_time_alone and len(rows) >= least and polished[at].estimate_s > limit_s:
            continue
        for one in dict.fromkeys((polished[at], candidates[at])):
            row = _known_row(request, one, kept) or row_of_candidate(request, one)
            if isinstance(row, BoundRow):
                rows.append(row)
                quickest_s[kind] = min(row.figures.step_s, quickest_s.get(kind, math.inf))
                break
            refusals.append(row)
    return rows


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
