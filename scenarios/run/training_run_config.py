"""Flags of a training run."""

from dataclasses import dataclass
from pathlib import Path

from agents.planners.names import (
    PLANNER_NAMES,
    POLICY,
    RULE_NAMES,
    SCHEDULER_NAMES,
    SEARCH_BOUND,
    SPOT_RULES,
)
from agents.trainers.table import DEFAULT_TRAINER, TRAINER_HELP
from des.base.flags import option
from des.dynamics import DYNAMICS
from des.plan.replacement import RESTART_S
from des.world.domain_load import LOADS_HELP
from scenarios.iteration.iteration_config import PlacedFlags

PROG = "python -m scenarios.training_run"
DECIDERS = (*PLANNER_NAMES, *RULE_NAMES, *SCHEDULER_NAMES, POLICY, SEARCH_BOUND)
"""Planners, rules, schedulers and the trained policies that may decide, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(PlacedFlags):
    """Flags of a training run."""

    dynamics: str | None = option(
        None, f"law of the links: one of {', '.join(DYNAMICS)}; none: as the world says"
    )
    placement: str | None = option(
        None,
        "domain, by number or name, times layers, such as 0*28,1*26,2*26; "
        "none: even parts over all domains in order",
    )
    parallelism: str | None = option(
        None,
        "tensor x data x pipeline, such as 2x4x1, for all domains or one for each, with commas; "
        "8x1x4v3 has 3 chunks a device in a loop, 8x1x4w2 has 2 there and back; "
        "none: the GPUs of a domain are one device",
    )
    plan: Path | None = option(
        None,
        "complete plan of `eastwest decide --json` that stays, with its world and job",
        is_file=True,
    )
    trainer: str = option(DEFAULT_TRAINER, TRAINER_HELP)
    planner: str | None = option(
        None,
        f"decides every epoch, one of {', '.join(DECIDERS)}; where sites come and go, one of "
        f"{', '.join(SPOT_RULES)}; none: the placement stays",
    )
    partial: bool = option(
        False, "sites that come and go are seen only while held, and when asked for"
    )
    link_delay_s: float = option(0.0, "age of the newest figures of links that the planner sees")
    links_in_use: bool = option(
        False, "the planner sees a link only while the plan in force sends over it"
    )
    link_noise: float = option(
        0.0, "standard deviation of errors of measured bandwidths, as a share"
    )
    link_belief: str = option(
        "last",
        "what the planner takes figures for: last, as they were seen last; law, what the law of "
        "the links lets expect over the horizon",
    )
    horizon_epochs: float = option(
        4.0,
        "epochs within which a move has to pay for itself; where sites come and go, by default the "
        "best on other courses of their law",
    )
    loads: str | None = option(
        None, f"{LOADS_HELP}; for the whole run, in which the queue has no effect", is_file=True
    )
    epochs: int = option(24, "epochs of the run")
    epoch_s: float = option(1200.0, "seconds of an epoch")
    seed: int = option(0, "seed of the links and the jobs")
    arrivals_per_s: float = option(0.0, "background jobs that arrive in each domain; 0: none")
    mean_duration_s: float = option(1800.0, "mean time for which one of them runs")
    gpu_fraction: float = option(0.125, "share of a domain's GPUs that it takes")
    memory_fraction: float = option(0.05, "share of a domain's memory that it takes")
    replay_loads: Path | None = option(
        None,
        "loads.csv of a queue or run, in place of arrivals",
        is_file=True,
    )
    most_jobs: int = option(4, "background jobs at a time in a domain, at most; the others wait")
    replan_threshold: float | None = option(
        None,
        "ask the planner only where a link or a domain in use has changed by more than this share "
        "since it was asked, such as 0.2, and re-bind the plan inside its sites in between; none: "
        "in every epoch",
    )
    replan_every: int | None = option(
        None, "ask the planner again after this many iterations; none: see --replan-threshold"
    )
    restart_s: float = option(RESTART_S, "seconds that any change of plan takes")
    pays_bytes: bool = option(True, "whether a change of plan has to move the model state")
    out: Path = option(Path("runs/training_run"), "folder for the files")

    @property
    def is_two_levels(self) -> bool:
        """Whether the planner is asked now and then, and plans are re-bound in between."""
        return self.replan_threshold is not None or self.replan_every is not None
