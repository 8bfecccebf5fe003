"""Methods measured: planners with a held plan, planners that re-plan, trained policies."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

from agents.decision.problem import Planner
from agents.hi_ppo.decision_report import coordinator_of
from agents.hi_ppo.policies import Policies, shipped_files
from agents.hi_ppo.schedulers import METHODS, MakeScheduler
from agents.planners.choice.depth import with_best_depth
from agents.planners.table import BASELINES
from agents.replanning.replanning import SearchScheduler, searching

POLICY = "hi_ppo"
"""Trained policies, which decide in every epoch."""

HORIZON_EPOCHS = 8.0
"""Horizon of the planners that re-plan: epochs for which the world is taken to stay."""


def held_planners() -> Mapping[str, Planner]:
    """Planners that plan once, at base figures, each with the schedule that suits it best."""
    planners = {name: with_best_depth(planner) for name, planner in BASELINES.items()}
    return MappingProxyType({**planners, "search_once": searching()})


def replanning() -> Mapping[str, MakeScheduler]:
    """Planners that re-plan in every epoch and move where that pays within the horizon."""
    makers: dict[str, MakeScheduler] = {"search_h8": METHODS["search_h8"]}
    for name in ("atlas", "formula"):
        makers[f"{name}_h8"] = partial(
            SearchScheduler,
            planner=with_best_depth(BASELINES[name]),
            horizon_epochs=HORIZON_EPOCHS,
            name=f"{name}_h8",
        )
    return MappingProxyType(makers)


def planner_names() -> tuple[str, ...]:
    """Names of all planners, those that re-plan first."""
    return (*replanning(), *held_planners())


def scheduler_of(checkpoint: Path | None) -> MakeScheduler | None:
    """Return what makes the scheduler of a checkpoint, or of the first one that is shipped.

    None where no checkpoint is given and none is shipped. One scheduler serves all draws, as each
    starts again.

    Raises
    ------
    ValueError
        If the file cannot be read or holds no such policies.
    """
    path = checkpoint or next(iter(shipped_files()), None)
    if path is None:
        return None
    coordinator = coordinator_of(Policies.load(path))
    return lambda: coordinator
