"""Compare all planners on worlds that stand still, and all rules of re-planning on moving ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path

from agents.decision.families import FAMILIES, SYNCHRONOUS
from agents.planners.names import MOVING_NAMES, POLICY, SCHEDULER_NAMES, SEARCH_BOUND
from agents.trainers.table import DEFAULT_TRAINER, TRAINER_HELP, TRAINERS
from des.base.checks import LARGEST_COUNT, nearest, require_one_of
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command_given
from des.base.document import DOCUMENT
from des.base.flags import option, to_dict
from des.base.lazy import lazy_imports
from des.base.speaking import SPEAKER
from des.job.models import layers_note
from des.worlds.world_flags import LayerFlags
from scenarios.frame.outputs import OutputFlags, repetition_of, write_outputs
from scenarios.frame.run_folder import RunFolder
from scenarios.study.compare.cases import (
    BEST_SCHEDULE,
    FORESEEN,
    GIVEN,
    STATIC_SUITES,
    ComparedDraw,
    compare_draws,
)
from scenarios.suites import EVALUATION_NAMES, EXAMPLES_NAME, SITE_NAMES

with lazy_imports(__name__):
    from rich.console import Console

    from des.base import console as base_console
    from scenarios.study import trained_plans
    from scenarios.study.compare import (
        compare_page,
        dynamic_part,
        outputs,
        running,
        static_part,
    )
    from scenarios.suites import examples


PROG = "python -m scenarios.compare"
_OF_FILES = ("figures", "parquet")
"""Flags on the formats of files, which a resumed comparison may change."""
_FAMILIES = {"synchronous": SYNCHRONOUS, "all": FAMILIES}
_SITES = tuple(name for name in SITE_NAMES if name != "sites_train")
_SUITES = (*EVALUATION_NAMES, *_SITES, EXAMPLES_NAME)
_QUICK = {"num_worlds": 1, "num_draws": 1, "num_epochs": 4, "suite": ("eval_static", "hard")}
_EXAMPLES = f"""\
examples:
  {PROG} --out runs/compare --workers 2
  {PROG} --network sites.yaml --model llama3_70b --microbatches 512 --planners decide,uniform
  {PROG} --suite eval_static --num-domains 4,5 --planners search,uniform --out runs/static
  {PROG} --planners {POLICY},crosspipe,sailor,mast --trainer reference --out runs/duel
  {PROG} --suite {EXAMPLES_NAME} --num-worlds 10 --num-draws 1 --families all \
      --planners decide,uniform --out runs/examples

{", ".join(STATIC_SUITES)} (the worlds shipped with
agents.decide) compare planners, each with the same search for the depth; under the name with
"{BEST_SCHEDULE}" behind it a planner's plan may have halved backward passes. On real sites planners
are left out above the number of domains that they are made for, and the output says so. decide is
the answer of agents.decide among --families; under a trainer what others plan is completed to
what the trainer runs. The other suites compare rules of re-
planning, which choose among the same plans of each draw at the same costs. A rule knows a plan
from the epoch whose network yields it; under the name with "{FORESEEN}" behind it, all plans of
the draw from the first epoch on, which no scheduler could. Schedulers, measured where they are
named, make plans of their own: {", ".join(SCHEDULER_NAMES)};
with a search among --families in every epoch {", ".join(MOVING_NAMES)};
with a search of the trainer's plans {SEARCH_BOUND}.
With {POLICY} among them all have equal schedules, and plan again in every epoch of moving links.

files written to --out, besides config.json:
  cases/NAME.csv       rows of one case; those that are there are not measured again
  static.csv, dynamic.csv            rows of all cases
  timings.csv          wall times of decisions, which differ from run to run
  static_summary.csv, dynamic_summary.csv, summary.json, static.png, dynamic.png
  report.html          the answer, the tables and the figures as a page
  saved_by_tokens.csv  bytes over links against data parallelism, by tokens a step
  tightness.csv        best plans over the proven bound, by family, number of domains and regime

exit codes: 0 done; 2 a flag is wrong, or the folder holds another comparison; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(LayerFlags, OutputFlags):
    """Flags of a comparison."""

    network: str | None = option(
        None,
        "topology file, or a shipped world, at base figures in place of the suites",
        is_file=True,
    )
    microbatches: int = option(32, "sequences of an iteration in --network")
    suite: tuple[str, ...] = option(
        EVALUATION_NAMES, f"suites of worlds, some of {', '.join(_SUITES)}"
    )
    num_worlds: int = option(8, "worlds of each suite, from the first one on")
    num_draws: int = option(4, "draws of each world")
    num_domains: tuple[int, ...] = option(
        (), "only worlds with these numbers of domains", default_text="all"
    )
    num_epochs: int | None = option(None, "first epochs of moving worlds only; none: all")
    seed: int = option(0, "seed of the worlds, and of the first draw")
    planners: tuple[str, ...] = option(
        (), "planners, rules, schedulers by name", default_text="all but exact and schedulers"
    )
    families: str = option(
        "synchronous",
        "kinds of plans that decide and rules choose among on real sites, and of the bound: "
        f"{', '.join(_FAMILIES)}",
    )
    trainer: str = option(DEFAULT_TRAINER, TRAINER_HELP)
    max_judged: int = option(20_000_000, "plans that the proof of an optimum may take")
    workers: int = option(1, "processes; the rows do not depend on it")
    quick: bool = option(False, "one world and draw of each suite: seconds", is_recorded=False)
    out: Path = option(Path("runs/compare"), "run folder; an existing comparison is resumed")

    def __post_init__(self) -> None:
        for field in ("num_worlds", "num_draws", "workers", "max_judged"):
            value = getattr(self, field)
            if not 1 <= value <= LARGEST_COUNT:
                raise UsageError(f"{PROG}: {field} must be at least 1, got {value}")
        if self.num_epochs is not None and self.num_epochs < 2:
            raise UsageError(f"{PROG}: num_epochs must be at least 2, got {self.num_epochs}")
        if self.seed < 0:
            raise UsageError(f"{PROG}: seed must be at least 0, got {self.seed}")
        if not self.suite or len(set(self.suite)) < len(self.suite):
            raise UsageError(f"{PROG}: suite must be one or more, each once, got {self.suite}")
        require_one_of(PROG, "trainer", self.trainer, TRAINERS)
        if SEARCH_BOUND in self.planners and TRAINERS[self.trainer].is_ideal:
            raise UsageError(f"{PROG}: {SEARCH_BOUND} needs a trainer that binds GPUs, got ideal")
        require_one_of(PROG, "families", self.families, _FAMILIES)
        known: tuple[str, ...] = ()
        if self.planners:
            known = (*static_part.static_planners(), *rule_names(), *SCHEDULER_NAMES, *MOVING_NAMES)
            known = (*known, SEARCH_BOUND, POLICY)
        for field, allowed in (("suite", _SUITES), ("planners", known)):
            for name in getattr(self, field):
                if name not in allowed:
                    hint = nearest(name, allowed)
                    raise UsageError(f"{PROG}: unknown name {name!r} in {field}; {hint}")


def rule_names() -> tuple[str, ...]:
    """Names of all rules of re-planning."""
    return (*dynamic_part.online_rules(), *dynamic_part.foreseen_rules(), dynamic_part.CLAIRVOYANT)


@command_given(Config, PROG, __doc__, _EXAMPLES, quick=_QUICK)
def main(config: Config, given: frozenset[str]) -> None:
    """Run the command on its settings."""
    choice = config.choice()
    _refuse_given(config, given)
    cases = _cases(config)
    worlds = [one.world() for one in {case.suite: case for case in cases}.values()]  # or refused
    SPEAKER.note(() if config.network is None else layers_note(worlds[0].workload))
    devices = trained_plans.devices_note(TRAINERS[config.trainer], worlds)
    console = base_console.FittedConsole()
    with _folder(config) as folder:
        result = _compare(config, cases, folder, console, devices)
        page = compare_page.compare_report(
            result,
            trained_plans.example_views(worlds[0], TRAINERS[config.trainer]),
            repetition_of(PROG, config),
            devices,
        )
        write_outputs(folder.path, choice, page, result.frames)
        console.print(f"written: {config.out}", soft_wrap=True)


def _compare(
    config: Config,
    cases: Sequence[ComparedDraw],
    folder: RunFolder,
    console: Console,
    devices: str,
) -> outputs.ComparisonSummary:
    """Measure what is not there yet, and write and show all."""
    frames = running.run_cases(cases, folder.path / "cases", num_workers=config.workers)
    parts = {
        part: [frame for case, frame in zip(cases, frames, strict=True) if case.part == part]
        for part in ("static", "dynamic")
    }
    result = outputs.write_comparison(folder, parts)
    DOCUMENT.add(**outputs.comparison_content(result), devices=devices, out=config.out)
    outputs.show_comparison(console, result, devices)
    return result


def _methods(config: Config) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Planners, and rules and schedulers, that are compared."""
    planners, rules = static_part.rivals(), rule_names()
    if not TRAINERS[config.trainer].is_ideal:
        planners, rules = (*planners, "decide"), (*rules, SEARCH_BOUND)
    if config.planners:
        planners = tuple(name for name in static_part.static_planners() if name in config.planners)
        rules = tuple(name for name in (*rules, *dynamic_part.DECIDERS) if name in config.planners)
        if POLICY in config.planners:
            others = (one for one in dynamic_part.DUELLISTS if one in config.planners)
            planners, rules = (POLICY, *planners), (dynamic_part.STATIC, *rules, *others)
    return planners, rules


def _cases(config: Config) -> list[ComparedDraw]:
    planners, rules = _methods(config)
    suites, num_worlds, given = config.suite, config.num_worlds, None
    if config.network is not None:
        suites, num_worlds, workload = (GIVEN,), 1, config.workload(config.microbatches)
        name = Path(config.network).stem
        given = examples.still_world(name, config.world(config.network), workload)
    firsts = [
        ComparedDraw(
            suite=name,
            seed=config.seed,
            index=0,
            draw=config.seed,
            methods=planners if name in STATIC_SUITES else rules,
            num_domains=config.num_domains,
            max_judged=config.max_judged,
            num_epochs=None if name in STATIC_SUITES else config.num_epochs,
            families=_FAMILIES[config.families],
            trainer=config.trainer,
            given=given,
        )
        for name in suites
    ]
    cases = compare_draws(firsts, num_worlds=num_worlds, num_draws=config.num_draws)
    if not cases:
        raise UsageError(f"{PROG}: planners must hold one that the suites compare, got none")
    if any(case.part == "dynamic" for case in cases) and not set(rules) & set(
        dynamic_part.online_rules()
    ):
        raise UsageError(
            f"{PROG}: planners must hold a rule besides the clairvoyant and those that know all "
            "plans of a draw, got none"
        )
    return cases


def _refuse_given(config: Config, given: Set[str]) -> None:
    """Refuse flags of suites with a world, and those of a job without one."""
    of_job = {"microbatches", *(one.name for one in fields(LayerFlags))}
    has_world = config.network is not None
    for name in sorted(given & ({"suite", "num_worlds", "num_domains"} if has_world else of_job)):
        needed = "with" if has_world else "without"
        raise UsageError(f"{PROG}: {name} must be left out {needed} network, got it")


@contextmanager
def _folder(config: Config) -> Iterator[RunFolder]:
    """Open a folder that holds the same comparison, or make one; it is locked meanwhile."""
    plain = replace(config, workers=1, out=Path("out"))
    wanted = {name: to for name, to in to_dict(plain).items() if name not in _OF_FILES}
    if not (config.out / "config.json").exists():
        with RunFolder.created(config.out, wanted) as folder:
            yield folder
        return
    with RunFolder.opened(config.out) as folder:
        kept = folder.read_config()
        if kept != wanted:
            differing = sorted(name for name in wanted if kept.get(name) != wanted[name])
            raise UsageError(
                f"--out {config.out}: holds another comparison, which differs in "
                f"{', '.join(differing) or 'its fields'}; choose another folder"
            )
        yield folder
