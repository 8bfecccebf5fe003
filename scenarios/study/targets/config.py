"""Flags of the targets, and what follows from them alone."""

from dataclasses import dataclass, fields
from pathlib import Path

from agents.planners.names import MOVING_NAMES, PLANNER_NAMES, SCHEDULER_NAMES, SEARCH_BOUND
from agents.trainers.table import DEFAULT_TRAINER, TRAINER_HELP, TRAINERS
from des.base.checks import LARGEST_COUNT, nearest, require_one_of
from des.base.command import UsageError
from des.base.flags import option
from des.job.models import MODEL_HELP
from des.worlds.world_flags import LayerFlags
from scenarios.frame.outputs import OutputFlags
from scenarios.study.targets.names import EPISODE_GROUPS, GROUP_NAMES, PERFECT_GROUPS, SITE_GROUPS

PROG = "python -m scenarios.kpi"
METHOD_NAMES = (*SCHEDULER_NAMES, *MOVING_NAMES, *PLANNER_NAMES, SEARCH_BOUND)
"""Schedulers, and planners whose plan is held."""

_CONTROLS = ("auto", "all", "none")

OF_NETWORK = ("microbatches", *(one.name for one in fields(LayerFlags)))
"""Flags of the job in ``network``."""

SITE_METHODS = ("decide",)
"""Measured on real sites where no method is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(LayerFlags, OutputFlags):
    """Flags of the targets."""

    checkpoint: tuple[Path, ...] = option(
        (),
        "policy checkpoints, one column each; none, and no --method: the shipped ones, with "
        "--quick the first",
    )
    method: tuple[str, ...] = option((), "planners to measure, one column each")
    controls: str = option(
        "auto",
        "control columns beside policies: untrained weights, random and nearest-neighbour "
        "proposals; all, none, or auto (all, but none with --quick)",
    )
    trainer: str = option(DEFAULT_TRAINER, TRAINER_HELP)
    local: Path | None = option(None, "trained local agent; none: the shipped one of seed 0")
    targets: tuple[str, ...] | None = option(None, "groups of targets; none: all")
    network: Path | None = option(
        None,
        "topology file, or a shipped world, in place of the suites",
        is_file=True,
        formerly="world",
    )
    model: str = option("llama2_7b", f"model of the job in --network: {MODEL_HELP}", is_file=True)
    microbatches: int = option(32, "sequences of an iteration in --network")
    sites: bool = option(
        False,
        "the suites of real sites in place of those on a plane, for planners; groups: "
        f"{', '.join(SITE_GROUPS)}",
    )
    num_domains: tuple[int, ...] | None = option(
        None,
        "numbers of domains; only suites with worlds of that size are measured; for targets "
        f"{' and '.join(EPISODE_GROUPS)}; none: 4, 5 and 6",
    )
    quick: bool = option(
        False, "one to two minutes; too little to claim anything", formerly="short"
    )
    num_worlds: int | None = option(
        None, "worlds of each suite; below 32 all other sizes shrink too; none: 32, quick 2"
    )
    num_draws: int | None = option(None, "draws of each world; none: 1")
    num_epochs: int | None = option(None, "decisions of a draw; none: 8")
    seed: int = option(0, "seed of the worlds, and of the first draw")
    out: Path = option(
        Path("runs/kpi"), "run folder: new or empty, or with --resume the one to continue"
    )
    resume: bool = option(False, "continue the run in --out with its original flags")
    workers: int | None = option(
        None,
        "processes, a group of targets each at a time; response times are measured alone, after "
        "the others; "
        "none: one a core, of a short run one",
    )

    def __post_init__(self) -> None:
        for field in ("num_worlds", "num_draws", "num_epochs", "workers"):
            value = getattr(self, field)
            if value is not None and not 1 <= value <= LARGEST_COUNT:
                raise UsageError(f"{PROG}: {field} must be at least 1, got {value}")
        if self.seed < 0:
            raise UsageError(f"{PROG}: seed must be at least 0, got {self.seed}")
        for field, known in (("targets", GROUP_NAMES), ("method", METHOD_NAMES)):
            for name in getattr(self, field) or ():
                if name not in known:
                    hint = nearest(name, known)
                    raise UsageError(f"{PROG}: unknown name {name!r} in {field}; {hint}")
        self._check_trainer()
        if self.targets == ():
            raise UsageError(f"{PROG}: targets must be one or more of {', '.join(GROUP_NAMES)}")
        if self.controls not in _CONTROLS:
            raise UsageError(
                f"{PROG}: controls must be {', '.join(_CONTROLS)}; got {self.controls!r}"
            )
        if self.controls == "all" and self.method and not self.checkpoint:
            raise UsageError(
                f"{PROG}: controls must be none or auto where no trained policy is measured, got "
                f"all with --method {','.join(self.method)}"
            )
        if self.network is None:
            self._check_suites()
        if self.num_domains is not None:
            self._check_num_domains(self.num_domains)
        if self.sites:
            self._check_sites()

    def _check_trainer(self) -> None:
        """Refuse what no trainer has, and plans of a trainer where devices are perfect."""
        require_one_of(PROG, "trainer", self.trainer, TRAINERS)
        if SEARCH_BOUND not in self.method:
            return
        if TRAINERS[self.trainer].is_ideal:
            raise UsageError(f"{PROG}: {SEARCH_BOUND} needs a trainer that binds GPUs, got ideal")
        for name in targets_of(self):
            if name in PERFECT_GROUPS:
                raise UsageError(
                    f"{PROG}: targets must leave out {', '.join(PERFECT_GROUPS)} with "
                    f"{SEARCH_BOUND}, as these are of perfect devices; got {name!r}"
                )

    def _check_suites(self) -> None:
        """Refuse a job where suites have their own."""
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in OF_NETWORK and value != one.default:
                raise UsageError(
                    f"{PROG}: {one.name} must be left out without network, got {value}"
                )

    def _check_num_domains(self, num_domains: tuple[int, ...]) -> None:
        """Refuse numbers of domains where worlds have their own."""
        shown = ",".join(map(str, num_domains)) or "none"
        if not num_domains:
            raise UsageError(f"{PROG}: num_domains must be one or more numbers, got none")
        for field, is_given in (("network", self.network is not None), ("sites", self.sites)):
            if is_given:
                raise UsageError(f"{PROG}: num_domains must be left out with {field}, got {shown}")
        for name in targets_of(self):
            if name not in EPISODE_GROUPS:
                raise UsageError(
                    f"{PROG}: targets must be {' or '.join(EPISODE_GROUPS)}, or both, with "
                    f"num_domains, as the others have worlds of their own; got {name!r}"
                )

    def _check_sites(self) -> None:
        """Refuse what needs one pipeline, a policy or a world of its own."""
        given = {
            "checkpoint": self.checkpoint,
            "local": self.local,
            "network": self.network,
            "controls": self.controls if self.controls == "all" else "",
        }
        for field, value in given.items():
            if value:
                shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
                raise UsageError(f"{PROG}: {field} must be left out with sites, got {shown}")
        for name in self.targets or ():
            if name not in SITE_GROUPS:
                raise UsageError(
                    f"{PROG}: targets must be some of {', '.join(SITE_GROUPS)} with sites, as the "
                    f"others are of one pipeline or of policies; got {name!r}"
                )


def targets_of(config: Config) -> tuple[str, ...]:
    """Groups of targets that are measured, in their order."""
    known = SITE_GROUPS if config.sites else GROUP_NAMES
    return tuple(name for name in known if config.targets is None or name in config.targets)


def column_methods(config: Config) -> tuple[str, ...]:
    """Planners and schedulers that are measured, a column each."""
    return SITE_METHODS if config.sites and not config.method else config.method


def control_columns(config: Config) -> bool:
    """Whether trained policies are compared with columns of what has learnt nothing."""
    has_policies = bool(config.checkpoint) or not column_methods(config)
    wanted = config.controls == "all" or (config.controls == "auto" and not config.quick)
    return wanted and has_policies
