"""Ablation of the preference as an input of the placement policy: fronts on priced worlds."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from des import NO_CORRECTIONS, Plan
from des.base.checks import require_count, require_seed
from des.base.command import EXIT_CODES
from des.base.commands import command
from des.base.document import DOCUMENT
from des.base.flags import option, to_dict
from des.base.help_text import terminal_width
from des.base.lazy import lazy_imports
from des.base.names import counted
from scenarios.frame.outputs import OutputFlags, write_outputs
from scenarios.frame.run_folder import RunFolder

with lazy_imports(__name__):
    import pandas as pd

    from agents.decision import situation as decision_situation
    from agents.hi_ppo import proposing
    from agents.hi_ppo.placement import placement_policy, proposals
    from agents.hi_ppo.placement.placement_checkpoint import PlacementNet
    from agents.planners.pareto import proposals as pareto_proposals
    from agents.ppo import devices
    from scenarios.study.ablations import ablations_page, variants
    from scenarios.study.pareto import fronts, study


PROG = "python -m scenarios.ablations.preference"
FIGURES = ("coverage", "hypervolume_ratio")

NUM_DRAWN = 64
"""Plans for each preference, as many as the look-ahead of `agents.hi_ppo.proposing` draws."""

_EPILOG = f"""\
Worlds and objectives are those of scenarios.pareto: time, communication cost and utilisation on
priced links. Each policy decides once for each of 36 preferences. The reference is NSGA-II with
enumeration (up to 6 domains) and all that the variants find.

variants:
  hi_ppo         as trained, with the preference as an input; its look-ahead has it too
  no_preference  the same, but the policy has no such input
  ... alone      {NUM_DRAWN} plans drawn from the policy for each preference, unjudged
  time_only      hi_ppo, policy and look-ahead both without the preference

examples:
  {PROG} --out runs/preference
  {PROG} --no-preference runs/blind/placement.safetensors --worlds 8 --out runs/blind

files written to --out: config.json, preference.csv (--parquet: also as Parquet), report.html and
its picture (--figures)

exit codes: 0 done; 2 a flag is wrong or a checkpoint cannot be read; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(OutputFlags):
    """Flags of the ablation."""

    out: Path = option(Path("runs/ablations-preference"), "new or empty folder of the run")
    checkpoint: tuple[Path, ...] = option((), "trained policies by seed; none: those shipped")
    no_preference: tuple[Path, ...] = option(
        (), "placement.safetensors of train placement --no-sees-preference, by seed"
    )
    num_domains: tuple[int, ...] = option((5,), "numbers of domains of the worlds")
    worlds: int = option(4, "number of worlds")
    seed: int = option(0, "seed of the worlds, their prices and random methods")
    evaluations: int = option(20_000, "plans that NSGA-II judges for the reference")

    def __post_init__(self) -> None:
        require_count(PROG, "worlds", self.worlds)
        require_count(PROG, "evaluations", self.evaluations)
        require_seed(PROG, "seed", self.seed)


@command(Config, PROG, __doc__, _EPILOG)
def main(config: Config) -> None:
    """Run the command on its settings."""
    choice = config.choice()
    devices.use_torch_threads(1)
    policies = variants.policies_given(config.checkpoint, {"no_preference": config.no_preference})
    worlds = fronts.price_worlds(config.worlds, num_domains=config.num_domains, seed=config.seed)
    with RunFolder.created(config.out, to_dict(config)) as folder:
        frame = compare_preferences(config, sweeps_of(policies, config.seed), worlds)
        summary = preference_summary(frame)
        figure = FIGURES[0]
        page = ablations_page.comparison_report(
            config,
            PROG,
            frame.rename(columns={"world": "network"}),
            by="variant",
            value=figure,
            label=figure.replace("_", " "),
            title="Policies with and without the preference",
            question="What is the preference worth as an input of the policy?",
            lines=[
                f"{name}: {figure} {cell}"
                for name, cell in zip(summary["variant"], summary[figure], strict=True)
            ],
        )
        write_outputs(folder.path, choice, page, {"preference": frame})
    DOCUMENT.add(rows=frame, out=config.out)
    sys.stdout.write(f"means ± 95 % over {len(worlds)} worlds and seeds:\n")
    sys.stdout.write(
        f"{preference_summary(frame).to_string(index=False, line_width=terminal_width())}\n"
    )
    sys.stdout.write(f"rows: {folder.path / 'preference.csv'}\n")


def sweeps_of(
    policies: Mapping[str, Sequence[PlacementNet]], seed: int
) -> dict[tuple[str, int], fronts.Sweep]:
    """Sweeps by variant and position of the weights among those given."""
    found: dict[tuple[str, int], fronts.Sweep] = {}
    for name, trained in policies.items():
        for row, policy in enumerate(trained):
            found[name, row] = fronts.swept(proposing.proposing(proposals.Proposer(policy)))
            found[f"{name} alone", row] = _make_draw(policy, seed)
    for row, policy in enumerate(policies[variants.HI_PPO]):
        found["time_only", row] = _for_time_alone(policy)
    return found


def _make_draw(policy: PlacementNet, seed: int) -> fronts.Sweep:
    proposer, own = proposals.Proposer(policy), placement_policy.PlacementPolicy.of(policy)

    def sweep(
        world: fronts.PricedWorld, preferences: Sequence[decision_situation.Preference]
    ) -> pareto_proposals.Proposals:
        rng = np.random.default_rng(seed)
        judge = proposer.judge_of(world.workload, world.topology, NO_CORRECTIONS)
        job = judge.job_of(world.topology)
        plans: list[Plan] = []
        for preference in preferences:
            situation = proposing.first_situation(world.topology, world.workload, preference)
            seen = proposer.features_of(situation, judge, job)
            plans += placement_policy.drawn_plans(own, seen, judge, job, count=NUM_DRAWN, rng=rng)
        return pareto_proposals.Proposals(plans=tuple(dict.fromkeys(plans)))

    return sweep


def _for_time_alone(policy: PlacementNet) -> fronts.Sweep:
    propose = proposing.proposing(proposals.Proposer(policy))

    def sweep(
        world: fronts.PricedWorld, preferences: Sequence[decision_situation.Preference]
    ) -> pareto_proposals.Proposals:
        plans = propose(world.topology, world.workload, decision_situation.TIME_ONLY)
        return pareto_proposals.Proposals(plans=tuple(dict.fromkeys(plans)))

    return sweep


def compare_preferences(
    config: Config,
    sweeps: Mapping[tuple[str, int], fronts.Sweep],
    worlds: Sequence[fronts.PricedWorld],
) -> pd.DataFrame:
    """One row per world, variant and seed."""
    rows = []
    for world in worlds:
        methods = {f"{name}/{seed}": sweep for (name, seed), sweep in sweeps.items()}
        comparison = study.fronts_of_methods(
            world,
            "all_gpus",
            methods,
            preferences=fronts.preference_grid(),
            num_evaluations=config.evaluations,
            seed=config.seed,
        )
        for one in comparison.methods:
            name, _, seed = one.method.partition("/")
            rows.append(
                {
                    "world": world.name,
                    "num_domains": world.topology.num_domains,
                    "variant": name,
                    "seed": int(seed),
                    **{figure: getattr(one.metrics, figure) for figure in FIGURES},
                    "num_points": one.metrics.num_points,
                    "num_reference": one.metrics.num_reference,
                    "reference_is_proven": comparison.reference.is_proven,
                    "timing_s": one.timing_s,
                }
            )
        sys.stdout.write(
            f"{world.name}: reference {counted(len(comparison.reference.figures), 'plan')}\n"
        )
        sys.stdout.flush()
    return pd.DataFrame(rows)


def preference_summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Means of the figures by variant, with intervals over worlds and seeds."""
    rows = []
    for name in frame["variant"].unique():
        own = frame[frame["variant"] == name]
        row: dict[str, object] = {"variant": name}
        for figure in FIGURES:
            found = ablations_page.over_seeds_and_networks(
                own.pivot(index="seed", columns="world", values=figure).to_numpy()
            )
            row[figure] = f"{found.mean:.3f} ± {found.half_width:.3f}"
        rows.append(row)
    return pd.DataFrame(rows)
