"""Answer with a bound plan: what a trainer runs quickest, its rivals, and other trainers."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from agents.answer.bound_facts import BoundChange, BoundFacts, Decider, OtherTrainer
from agents.answer.bound_page import bound_sections
from agents.answer.run_terms import RunTerms
from agents.answer.sections import as_html, as_text
from agents.answer.sureness import sureness_of
from agents.answer.sureness_page import sureness_dict
from agents.answer.transport_times import transport_dict, transport_times
from agents.answer.whole_run import whole_run
from agents.decision.bound_plan import BoundPlan
from agents.decision.plan_document import write_document
from agents.judge.placed_plans import place_on
from agents.replanning.move_cost import reachable_move
from agents.search.bound_rows import BoundRow
from agents.search.bound_search import BoundFound, best_of_kinds, proven_bound_s, search_bound
from agents.search.known_pipelines import NearBest
from agents.search.objective import PlanObjective
from agents.search.search import PlanRequest
from agents.search.shared_parts import SharedParts
from agents.trainers.table import TRAINERS
from des.plan.replacement import Replacement

_UNLESS_GIVEN = Replacement()
"""Cost of a change of plan: a restart, and the bytes that are missing."""


@dataclass(frozen=True, kw_only=True)
class BoundAnswer(BoundFacts):
    """A bound plan for a job on a network; as text it is the page for people."""

    def as_dict(self) -> dict[str, object]:
        """Return the document of the plan, which `eastwest simulate --plan` repeats, and why."""
        document = write_document(self.best.bound)
        answer: dict[str, object] = {
            "decided_by": self.decided_by(self.best),
            "deciders": {name: rows[0].figures.step_s for name, rows in self.rows_of.items()},
            "kinds": [_row_dict(row) | {"decided_by": self.decided_by(row)} for row in self.rows],
            "conditional": [_row_dict(row) for row in self.conditional],
            "other_trainers": [
                {"trainer": one.title, "misfit": one.misfit}
                | ({} if one.row is None else _row_dict(one.row))
                for one in self.others
            ],
            "layer_times": {one.name: one.layer_times for one in self.best.bound.topology.domains},
            "num_judged": self.num_judged,
            "bound_s": self.bound_s,
            "over_bound": self.over_bound,
            "notes": list(self.notes),
        }
        if self.change is not None:
            answer["change"] = {
                "present_s": self.change.present_s,
                "num_bytes": self.change.num_bytes,
                "change_s": None if self.change.cost is None else self.change.change_s,
                "misfit": self.change.misfit,
            }
        if self.sureness is not None:
            answer["sureness"] = sureness_dict(self.sureness)
        if self.transport is not None:
            answer["transport"] = transport_dict(self.transport)
        if self.run is not None:
            answer["whole_run"] = asdict(self.run) | {"total_s": self.run.total_s}
        document["answer"] = answer
        return document

    def __str__(self) -> str:
        return self.as_text()

    def as_text(self, width: int | None = None) -> str:
        """The page; of tables the columns that fit where a width is given."""
        return as_text(bound_sections(self), width)

    def _repr_html_(self) -> str:
        """The page as HTML, which notebooks show."""
        return as_html(bound_sections(self))


def answer_bound(
    request: PlanRequest,
    objective: PlanObjective,
    *,
    in_force: BoundPlan | None = None,
    replacement: Replacement | None = _UNLESS_GIVEN,
    is_alone: bool = False,
    notes: Sequence[str] = (),
    terms: RunTerms | None = None,
    searches: bool = True,
    propose: Callable[[BoundPlan | None], BoundFound] | None = None,
) -> BoundAnswer:
    """Answer with the best bound plan.

    Parameters
    ----------
    in_force
        Plan of the job, maybe on a world of other domains.
    replacement
        None: see `agents.replanning.move_cost.assumed_restart_s`.
    is_alone
        Leaves out other trainers, and the answers where something is otherwise.
    terms
        Those of the whole run, if it is to be reckoned.
    searches
        Whether to search; without it the policies are all there is, and nothing is searched again.
    propose
        Finds what the policies of Hi-PPO propose, given the plan in force if it can run, see
        `agents.hi_ppo.bound_proposals.search_proposed`; with a search, nothing where they find no
        plan, and a note says why. None: the search decides alone.

    Raises
    ------
    InfeasiblePlacementError
        If none fits, naming the least memory that is missing on a GPU.
    ValueError
        If none keeps the limits of the objective.
    """
    found: dict[Decider, BoundFound] = {}
    shared = SharedParts()
    present, misfit = (None, "") if in_force is None else _placed(request, in_force)
    if searches:
        found["search"] = search_bound(request, objective, in_force=present, shared=shared)
    if propose is not None:
        try:
            found["hi_ppo"] = propose(present)
        except ValueError as error:
            if not searches:
                raise
            notes = (*notes, f"Hi-PPO decides nothing here: {error}")
    rows = best_of_kinds(objective, [row for one in found.values() for row in one.rows])
    change = None
    if in_force is not None:
        cost = reachable_move(request.topology, in_force, rows[0].bound, replacement)
        change = BoundChange(in_force=in_force, present=present, cost=cost, misfit=misfit)
    first = next(iter(found.values()))
    return BoundAnswer(
        request=request,
        objective=objective,
        rows=rows,
        others=() if is_alone else tuple(_others(request, objective, shared)),
        num_judged=sum(one.num_judged for one in found.values()),
        bound_s=proven_bound_s(request, shared),
        change=change,
        notes=tuple(notes),
        conditional=tuple(
            row for row in first.conditional if row.figures.step_s < rows[0].figures.loss_s
        ),
        rows_of={name: one.rows for name, one in found.items()},
        sureness=(
            sureness_of(request, objective, rows[0], shared, _near(found["search"], objective))
            if searches and not is_alone
            else None
        ),
        transport=transport_times(rows[0].bound),
        run=None if terms is None else whole_run(rows[0], terms),
    )


def _near(found: BoundFound, objective: PlanObjective) -> NearBest | None:
    """Plans near the best by time; None where time is not all that counts."""
    is_time_alone = objective.is_time_alone and objective.most_s == math.inf
    return found.near if is_time_alone else None


def _others(
    request: PlanRequest, objective: PlanObjective, shared: SharedParts
) -> list[OtherTrainer]:
    found = []
    for trainer in TRAINERS.values():
        if trainer.is_ideal or trainer.name == request.trainer.name:
            continue
        factor = None if trainer.synchronisations == ("every_step",) else request.token_factor
        asked = replace(request, trainer=trainer, schedules=(), token_factor=factor)
        try:
            row = search_bound(asked, objective, shared=shared, is_best_alone=True).best
        except ValueError as error:
            misfit = str(error).removeprefix(f"trainer {trainer.name}: ")
            found.append(OtherTrainer(title=trainer.title, row=None, misfit=misfit))
        else:
            found.append(OtherTrainer(title=trainer.title, row=row))
    return found


def _placed(request: PlanRequest, in_force: BoundPlan) -> tuple[BoundPlan | None, str]:
    """The plan in force on the network as it is, or why it cannot run there."""
    try:
        return place_on(replace(in_force, corrections=request.corrections), request.topology), ""
    except ValueError as error:
        return None, str(error)


def _row_dict(row: BoundRow) -> dict[str, object]:
    figures, plan = row.figures, row.bound.plan
    return {
        "kind": row.kind,
        "step_s": figures.step_s,
        "schedule": plan.schedule,
        "microbatch_size": row.bound.microbatch_size,
        "usd": figures.usd,
        "wan_bytes": figures.wan_bytes,
        "memory_fraction": figures.memory_fraction,
        "utilisation": figures.utilisation,
        "token_factor": row.price.factor,
        "token_factor_note": row.condition or row.price.note,
    }
