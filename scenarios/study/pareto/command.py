"""Compare fronts of time, communication cost and utilisation with the best known ones."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from des.base.checks import require_count, require_seed
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command
from des.base.document import DOCUMENT
from des.base.flags import option, to_dict
from des.base.help_text import terminal_width
from des.base.lazy import lazy_imports
from des.base.names import counted
from des.plan.plan_texts import PERFECT_DEVICES
from scenarios.frame.files import write_json
from scenarios.frame.outputs import OutputFlags, repetition_of, write_outputs
from scenarios.frame.run_folder import RunFolder
from scenarios.study.pareto.names import NUM_DOMAINS, NUM_PREFERENCES, TABLE_NAMES

with lazy_imports(__name__):
    import pandas as pd

    from agents.hi_ppo import policies as hi_ppo_policies
    from agents.hi_ppo import proposing
    from agents.planners.pareto.proposals import Propose
    from scenarios.study.pareto import fronts, methods, pareto_page, study


PROG = "python -m scenarios.pareto"
METRICS_CSV, POINTS_CSV, FRONTS_PNG, SUMMARY_JSON = (
    "metrics.csv",
    "points.csv",
    "fronts.png",
    "summary.json",
)
_QUICK = {"worlds": 1, "tables": TABLE_NAMES[:1], "preferences": 6, "evaluations": 1000}
_EXAMPLES = f"""\
Worlds are those of the suite eval_static with a transfer/compute ratio of 0.5 or 1, and a price on
every direction of a link, log-normal with sigma 0.6. The reference is NSGA-II together with
enumeration (up to 6 domains) and all that the methods find.

tables:
  all_gpus     time, communication cost, utilisation of the GPUs of all domains
  used_gpus    the same, utilisation of the GPUs of the domains in use
  activations  the first, and peak activation memory

examples:
  {PROG}
  {PROG} --worlds 12 --num-domains 5 --out fronts
  {PROG} --worlds 1 --tables all_gpus --evaluations 2000
  {PROG} --checkpoint seed0.safetensors,seed1.safetensors --num-domains 6

files written to --out:
  config.json   settings that repeat the run
  {METRICS_CSV}   one row per world, table and method; wall times in timing_s
  {POINTS_CSV}    one row per plan of any front, the reference's too
  {SUMMARY_JSON}  means with 95 % intervals, verdicts, and methods that had no plan for a world
  {FRONTS_PNG}    cost against time of the first worlds (--figures: other formats)
  report.html   the same as a page; plans show on hovering

exit codes: 0 done; 2 a flag is wrong, or the files cannot be written;
  {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(OutputFlags):
    """Flags of the comparison of fronts."""

    worlds: int = option(6, "number of worlds")
    num_domains: tuple[int, ...] = option(NUM_DOMAINS, "numbers of domains of the worlds")
    seed: int = option(0, "seed of the worlds, their prices and random methods")
    tables: tuple[str, ...] = option(TABLE_NAMES, "objectives, see below")
    preferences: int = option(NUM_PREFERENCES, "weights of one sweep: 36, 28, 21, 15, 10, 6, 3, 1")
    evaluations: int = option(20_000, "plans that NSGA-II judges for the reference")
    checkpoint: tuple[Path, ...] = option(
        (),
        "trained policies to compare, by the names of their files; none: those shipped",
    )
    quick: bool = option(
        False, "one world, one table and few plans of the reference: seconds", is_recorded=False
    )
    out: Path | None = option(None, "new or empty folder for the files; none: nothing is written")


@command(Config, PROG, __doc__, _EXAMPLES, quick=_QUICK)
def main(config: Config) -> None:
    """Run the command on its settings."""
    choice = config.choice()
    _check(config)
    policies = proposing.policies_of(config.checkpoint or hi_ppo_policies.shipped_files())
    worlds = fronts.price_worlds(config.worlds, num_domains=config.num_domains, seed=config.seed)
    if config.out is None:
        _study(config, policies, worlds)
        return
    with RunFolder.created(config.out, to_dict(config)) as folder:
        metrics, summary, comparisons = _study(config, policies, worlds)
        drawn = [one for one in comparisons if one.table == config.tables[0]]
        page = pareto_page.pareto_report(metrics, drawn, repetition_of(PROG, config))
        frames = {"metrics": metrics, "points": study.points_frame(comparisons)}
        write_json(folder.path / SUMMARY_JSON, summary)
        write_outputs(folder.path, choice, page, frames)
        sys.stdout.write(f"written: {folder.path}\n")


def _study(
    config: Config, policies: Mapping[str, Propose], worlds: Sequence[fronts.PricedWorld]
) -> tuple[pd.DataFrame, dict[str, object], list[study.WorldFronts]]:
    """Compare on all worlds, and show what came out."""
    comparisons = [
        _compare(config, policies, world, table) for world in worlds for table in config.tables
    ]
    metrics = study.metrics_frame(comparisons)
    summary = study.front_summary(metrics, comparisons)
    shown = metrics.groupby(["table", "method"], sort=False)
    columns = ["coverage", "hypervolume_ratio", "igd_plus", "num_points", "timing_s"]
    DOCUMENT.add(**summary, devices=PERFECT_DEVICES, out=config.out)
    sys.stdout.write(f"\nmeans over {counted(len(worlds), 'world')}; {PERFECT_DEVICES}:\n")
    sys.stdout.write(f"{shown[columns].mean().round(3).to_string(line_width=terminal_width())}\n")
    return metrics, summary, comparisons


def _check(config: Config) -> None:
    """Refuse flags that would fail only after minutes."""
    require_count("pareto", "worlds", config.worlds)
    require_count("pareto", "evaluations", config.evaluations)
    require_seed("pareto", "seed", config.seed)
    fronts.preference_grid(config.preferences)
    for table in config.tables or ("none",):
        if table not in TABLE_NAMES:
            raise UsageError(f"--tables: must be some of {', '.join(TABLE_NAMES)}; got {table}")
    for name in ("tables", "num_domains"):
        values = getattr(config, name)
        if len(set(values)) < len(values):
            raise UsageError(f"{name}: must each be given once, got {values}")


def _compare(
    config: Config, policies: Mapping[str, Propose], world: fronts.PricedWorld, table: str
) -> study.WorldFronts:
    comparison = study.fronts_of_methods(
        world,
        table,
        methods.methods_of(study.TABLES[table], seed=config.seed, policies=policies),
        preferences=fronts.preference_grid(config.preferences),
        num_evaluations=config.evaluations,
        seed=config.seed,
    )
    reference = comparison.reference
    proven = "proven" if reference.is_proven else "not proven"
    covered = ", ".join(f"{one.method} {one.metrics.coverage:.0%}" for one in comparison.methods)
    sys.stdout.write(
        f"{world.name} {table}: reference {len(reference.figures)} plans, {proven}; {covered}\n"
    )
    sys.stdout.flush()
    return comparison
