"""Flags of a training run that have no effect beside others."""

from collections.abc import Collection

from agents.planners.names import PLANNER_NAMES
from des.base.command import UsageError
from scenarios.run.training_run_config import DECIDERS, PROG, Config

OF_A_PLANNER = ("horizon_epochs", "restart_s", "pays_bytes", "replan_threshold")
"""Flags that say nothing where the placement stays."""
OF_OTHER_JOBS = ("mean_duration_s", "gpu_fraction", "memory_fraction", "most_jobs")
"""Flags without effect where no background jobs arrive."""
OF_A_PROPOSAL = ("horizon_epochs", "schedule")
"""Flags for planners of one plan: rules and schedulers have a horizon and choose the schedule."""
OF_A_PLAN = (
    *("network", "model", "num_layers", "profile", "profile_gpu", "extrapolate", "placement"),
    *("parallelism", "replicas", "shares", "trainer", "planner", "schedule", "microbatches"),
    *("microbatch_size", "sequence_length", "precision", "corrections"),
)
"""Flags of what a complete plan says."""


def idle_fields(config: Config) -> tuple[str, ...]:
    """Names of the fields that the others make idle."""
    of_a_plan = () if config.plan is None else OF_A_PLAN
    of_a_planner: tuple[str, ...] = OF_A_PLANNER if config.planner is None else ()
    if config.planner in DECIDERS and config.planner not in PLANNER_NAMES:
        of_a_planner = OF_A_PROPOSAL
    return of_a_plan + of_a_planner + (OF_OTHER_JOBS if config.arrivals_per_s == 0 else ())


def check_given(config: Config, given: Collection[str]) -> None:
    """Check that no flag was given that has no effect.

    Raises
    ------
    UsageError
        If there is one.
    """
    for name in OF_A_PLAN if config.plan is not None else ():
        if name in given:
            raise UsageError(f"{PROG}: {name} must not be given with plan, which says it")
    for name in idle_fields(config):
        if name in given:
            needed = "arrivals_per_s above 0"
            if name in (*OF_A_PLANNER, *OF_A_PROPOSAL):
                needed = "a planner" if config.planner is None else "a planner of one plan"
            raise UsageError(
                f"{PROG}: {name} must be left out without {needed}, got {getattr(config, name)!r}"
            )
