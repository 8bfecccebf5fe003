"""Candidates as whole plans: the best of each kind with layers moved, then simulated."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agents.search.bound_rows import BoundRow, PlanKind, kind_of_chains, row_of_candidate
from agents.search.candidates import Candidate
from agents.search.desk import SearchDesk
from agents.search.search import PlanRequest
from agents.search.settings import unpaced_schedules

_MOST_POLISHED = 8
"""Candidates of a kind whose layers are moved by times of whole iterations: where sends block, that
gains up to a tenth, so a later one may become the best."""

_MOST_EXACT = 8
"""Candidates of a kind that are simulated as whole plans."""

MOST_REFINED = 3
"""Best plans that are tried with schedules made for each of them."""

_ROUNDING = 1e-9
"""Share by which times that are equal but for rounding may differ."""


@dataclass(frozen=True, kw_only=True)
class ExactRows:
    """Rows of the best candidates that the trainer runs and that fit.

    Attributes
    ----------
    kept
        Row of the plan in force, which is not simulated again.
    is_time_alone
        Leave out candidates that are estimated to take longer than a row of their kind.
    is_short
        Leave them out where that is a row of any kind; with schedules that are made for one plan
        each a slower one may become the best.
    refusals
        Reasons why other candidates have no row.
    """

    request: PlanRequest
    desk: SearchDesk
    kept: BoundRow | None
    is_time_alone: bool
    is_short: bool
    refusals: list[str] = field(default_factory=list)
    _quickest_s: dict[PlanKind | None, float] = field(default_factory=dict)

    def of(self, candidates: Sequence[Candidate]) -> list[BoundRow]:
        """Rows of candidates of some sites."""
        rows: list[BoundRow] = []
        candidates = list({_key_of(one): one for one in reversed(candidates)}.values())[::-1]
        polished = [
            self.desk.polished(one) if at < _MOST_POLISHED else one
            for at, one in enumerate(candidates)
        ]
        for at in sorted(range(len(candidates)), key=lambda at: polished[at].estimate_s):
            if len(rows) == _MOST_EXACT:
                break
            kind = None if self._is_of_any_kind else kind_of_chains(candidates[at].chains)
            is_slow = polished[at].estimate_s > self._limit_s(kind)
            if self.is_time_alone and is_slow and len(rows) >= self._least:
                continue
            for one in dict.fromkeys((polished[at], candidates[at])):
                row = self._row(one)
                if isinstance(row, BoundRow):
                    rows.append(row)
                    known_s = self._quickest_s.get(kind, math.inf)
                    self._quickest_s[kind] = min(row.figures.step_s, known_s)
                    break
                self.refusals.append(row)
        return rows

    @property
    def _is_refined(self) -> bool:
        return bool(unpaced_schedules(self.request.trainer, self.request.schedules))

    @property
    def _least(self) -> int:
        """Rows that schedules made for one plan are tried with, however slow they are without."""
        return MOST_REFINED if self._is_refined else 0

    @property
    def _is_of_any_kind(self) -> bool:
        return self.is_short and not self._is_refined

    def _limit_s(self, kind: PlanKind | None) -> float:
        """Estimate above which a candidate of a kind is left out. [s]"""
        known_s = self._quickest_s.get(kind, math.inf)
        if kind is None and self.kept is not None:
            known_s = min(known_s, self.kept.figures.step_s)
        return known_s * (1.0 + _ROUNDING)

    def _row(self, candidate: Candidate) -> BoundRow | str:
        request, kept = self.request, self.kept
        if kept is not None:
            own = candidate.setting.workload(request.job), candidate.plan(request.topology)
            if own == (kept.bound.workload, kept.bound.plan):
                return replace(kept, candidate=candidate)
        return row_of_candidate(request, candidate)


def layers_key(candidate: Candidate) -> tuple[object, ...]:
    """All of a candidate that tells its plan but the schedule."""
    setting = candidate.setting
    sizes = setting.degrees, setting.microbatch_size, setting.recomputation
    return *sizes, candidate.chains, candidate.splits, candidate.stage_layers


def _key_of(candidate: Candidate) -> tuple[object, ...]:
    """All of a candidate that tells its plan; a pipeline of one stage is alike in any order."""
    setting = candidate.setting
    order = (setting.schedule, setting.group_factor) if candidate.num_workers > 1 else ()
    return *layers_key(candidate), order
