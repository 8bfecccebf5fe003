"""Time, utilisation and communication of bound plans: what a trainer runs on the GPUs there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from agents.decision.trained_workload import trained_workload
from agents.search.bound_search import BoundFound
from agents.trainers.table import TRAINERS
from agents.trainers.trainer import Trainer
from des import InfeasiblePlacementError
from scenarios.study.targets.measurement_size import SchedulerColumn
from scenarios.study.targets.preferred_bytes import SAVED
from scenarios.study.targets.references import communication_of, data_parallel_plan
from scenarios.study.targets.target import Goal, Target, mean_fields
from scenarios.study.targets.time_and_utilisation import SUITES, TIME_SAVED, UTILISATION_GAIN
from scenarios.study.trained_plans import search_plans
from scenarios.suites import SuiteWorld

MEASURED_TRAINERS = ("megatron", "torchtitan", "reference")
"""Trainers whose bound plans are measured: the default one, torch's, and one without limits."""


@dataclass(frozen=True, kw_only=True)
class BoundFigures:
    """Bound plans of one world at base figures; None where nothing fits, or nothing on one site.

    ``replica_bytes`` go over the links in a step of a copy in every domain. [s, bytes]
    """

    best_s: float | None
    single_s: float | None
    wan_bytes: float
    replica_bytes: float


def measure(column: SchedulerColumn) -> list[Target]:
    """Measure what the search finds for each trainer; policies have no part in it."""
    scope = column.scope
    worlds = [world for name in SUITES for world in scope.worlds(name)]
    found: list[Target] = []
    for name in MEASURED_TRAINERS:
        found += scope.once(("bound", name), partial(_targets, TRAINERS[name], worlds))
    return found


def bound_figures(trainer: Trainer, world: SuiteWorld) -> BoundFigures:
    """Search the bound plans of a world."""
    workload = trained_workload(world.workload, trainer)
    copies = data_parallel_plan(world.topology, workload)
    sent = communication_of(world.topology, workload, copies).cost_bytes
    found = _found(trainer, world)
    if found is None:
        return BoundFigures(best_s=None, single_s=None, wan_bytes=0.0, replica_bytes=sent)
    single = [row.figures.step_s for row in found.rows if row.kind == "single"]
    return BoundFigures(
        best_s=found.best.figures.step_s,
        single_s=single[0] if single else None,
        wan_bytes=found.best.figures.wan_bytes,
        replica_bytes=sent,
    )


def _found(trainer: Trainer, world: SuiteWorld) -> BoundFound | None:
    try:
        return search_plans(world.topology.at_start(), world.workload, trainer)
    except InfeasiblePlacementError:
        return None


def _targets(trainer: Trainer, worlds: Sequence[SuiteWorld]) -> list[Target]:
    figures = [bound_figures(trainer, world) for world in worlds]
    known = [one for one in figures if one.best_s is not None]
    pairs = [(one.best_s, one.single_s) for one in known if one.best_s and one.single_s]
    notes: tuple[str, ...] = (
        f"{len(known)} of {len(figures)} worlds have a plan that fits; in {len(pairs)} of them "
        "the job fits into one domain too",
        "links at base figures, domains without load; GPUs of a domain count as one server",
    )
    if len(pairs) == len(figures) and len(set(pairs)) == 1:  # all of one network
        best_s, single_s = pairs[0]
        notes += (f"{best_s!r} s a step, {single_s!r} s on one domain",)
    savings = [1.0 - best_s / single_s for best_s, single_s in pairs]
    gains = [single_s / best_s - 1.0 for best_s, single_s in pairs]
    fewer = [1.0 - one.wan_bytes / one.replica_bytes for one in known]
    return [
        _target(f"bound time, {trainer.name}", _TIME, savings, TIME_SAVED, notes),
        _target(f"bound utilisation, {trainer.name}", _USE, gains, UTILISATION_GAIN, notes),
        _target(f"bound communication, {trainer.name}", _BYTES, fewer, SAVED, notes[:1]),
    ]


_TIME = (
    "1 - time of a step of the best bound plan over that of the reference",
    "the best bound plan on one domain, by the same search",
)
_USE = (
    "U / U_ref - 1; useful FLOPs over time and peak of all domains' GPUs",
    "the best bound plan on one domain, by the same search",
)
_BYTES = (
    "1 - bytes over all links in a step over those of the reference",
    "a copy in every domain, gradients of the trainer's type summed up after every step",
)


def _target(
    name: str,
    said: tuple[str, str],
    values: Sequence[float],
    least: float,
    notes: tuple[str, ...],
) -> Target:
    return Target(
        name=name,
        definition=said[0],
        reference=said[1],
        goal=Goal(sense="at least", target=least),
        **mean_fields(values),
        has_fewer_gpus=said is not _BYTES,
        notes=notes,
    )
