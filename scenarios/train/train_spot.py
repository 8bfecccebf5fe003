"""Train a pointer over sets of sites that come and go; compare it with rules on unseen courses.

Courses are first halves of the public spot traces, thinned and stretched, and drawn laws; without
--traces drawn laws alone. Judged are the suites of ``eastwest reproduce spot``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from des.base.checks import require_count, require_seed
from des.base.command import EXIT_CODES
from des.base.document import DOCUMENT
from des.base.flags import option, parse
from des.base.interruption import INTERRUPTED
from des.base.lazy import lazy_imports
from scenarios.frame.outputs import OutputFlags
from scenarios.train.training_config import PROG as TRAIN

with lazy_imports(__name__):
    import pandas as pd

    from agents.hi_ppo.spot import batch, policy, task
    from agents.ppo import networks, ppo_config, trainer
    from agents.replanning.spot import table
    from agents.replanning.spot.table import SpotCase
    from scenarios.frame import outputs
    from scenarios.reproduce import cases, spot_methods, spot_sites
    from scenarios.train import ppo_training, spot_worlds

PROG = f"{TRAIN} spot"
_EPILOG = f"""\
examples:
  {PROG} --seed 0 --out runs/spot
  {PROG} --traces spot-traces --seed 0 --out runs/spot
  {PROG} --traces spot-traces --evaluate runs/spot/spot-0.safetensors,runs/spot/spot-1.safetensors

files written to --out: spot-SEED.safetensors (policy, and what --resume needs), curve-SEED.csv,
shares.csv (a row for each suite, method and instance) and result.json

exit codes: 0 done; 2 bad input; {EXIT_CODES}
"""
_RULES = ("hysteresis", "survival", "sampled")
"""Rules that the gate asks to beat, each tuned on first halves."""
_GATE_POINTS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(OutputFlags):
    """Flags of the training."""

    seed: int = option(0, "seed of weights, courses and actions")
    steps: int = option(100_000, "decisions to train on")
    envs: int = option(16, "jobs side by side")
    traces: str = option("", "clone of the public spot traces", default_text="drawn laws alone")
    instances: int = option(24, "instances of each suite to compare on")
    partial: bool = option(False, "see only sites that are held or asked for")
    resume: bool = option(False, "continue the training in --out")
    evaluate: tuple[str, ...] = option(
        (), "policies to compare, without training", default_text="none"
    )
    out: Path = option(Path("runs/spot"), "folder for the files")


def run(arguments: Sequence[str], prog: str) -> int:
    """Train by the flags of the task and return the exit code."""
    config = parse(Config, arguments, prog=prog, description=__doc__ or "", epilog=_EPILOG)
    require_seed("--seed", "value", config.seed)
    for name in ("steps", "envs", "instances"):
        require_count(f"--{name}", "value", getattr(config, name))
    config.choice()  # refused before minutes of work, as a folder that is
    outputs.require_no_run(config.out)
    file = cases.PUBLISHED / "spot.json"
    rows = cases.read_cases(file, spot_sites.SiteSets, file).rows
    traces = Path(config.traces) if config.traces else None
    judged = rows[:: max(len(rows) // config.instances, 1)]
    suites = spot_methods.suites_of(traces, judged, sees_all=not config.partial)
    paths = [Path(each) for each in config.evaluate]
    if not paths:
        paths = [config.out / f"spot-{config.seed}.safetensors"]
        config.out.mkdir(parents=True, exist_ok=True)
        known = None if traces is None else suites.known
        worlds = spot_worlds.SpotTrainingWorlds.of(rows, known, sees_all=not config.partial)
        if not _train(config, worlds, paths[0]):
            return INTERRUPTED
    most = table.clairvoyant_tokens(suites.training)
    rules_h = {
        rule: table.tune_horizon_h(table.METHODS[rule], suites.training, most) for rule in _RULES
    }
    frame = pd.DataFrame(
        [row for name, each in suites.judged.items() for row in _rows(name, each, rules_h, paths)]
    )
    lines = share_lines(frame)
    paths = ppo_training.show_and_write(config, config.out, lines, {"shares": frame})
    DOCUMENT.add(rows=frame, lines=lines, files=paths)
    return 0


def share_lines(frame: pd.DataFrame) -> list[str]:
    """Share of the clairvoyant by suite and method, what the learnt one is ahead, and the gate."""
    shares = frame.pivot_table("share_percent", ["suite", "instance"], "method", sort=False)
    lines = []
    for suite in dict.fromkeys(frame["suite"]):
        lines.append(f"{suite}: percent of the clairvoyant's tokens; the learnt policy ahead of it")
        part = shares.loc[suite]
        for method in dict.fromkeys(frame["method"]):
            mean, half = _mean(part[method])
            ahead, ahead_half = _mean(part["learnt"] - part[method])
            lines.append(f"  {method:12}{mean:7.2f} ± {half:.2f}{ahead:+9.2f} ± {ahead_half:.2f}")
    unseen = shares.drop("known", level="suite")
    leads = {rule: _mean(unseen["learnt"] - unseen[rule]) for rule in _RULES}
    rule, (mean, half) = min(leads.items(), key=lambda each: each[1][0])
    passes = mean >= _GATE_POINTS and min(mean - half for mean, half in leads.values()) > 0
    return [
        *lines,
        f"gate {'passed' if passes else 'not passed'}: {mean:+.2f} ± {half:.2f} points over {rule} "
        f"on unseen families, asked {_GATE_POINTS:g}; the default is "
        f"{'the learnt policy' if passes else 'the best rule'}",
    ]


def _mean(column: pd.Series) -> tuple[float, float]:
    """Mean over instances, and half of its interval."""
    values = np.array(column.tolist(), np.float64)
    return float(values.mean()), spot_methods.half_width(values)


def _rows(
    suite: str, judged: Sequence[SpotCase], rules_h: Mapping[str, float], paths: Sequence[Path]
) -> Iterator[object]:
    """Share of every instance under every method, rules with their horizons."""
    most = table.clairvoyant_tokens(judged)
    worlds, laws = [case.world for case in judged], [case.law for case in judged]
    methods = {
        rule: [table.METHODS[rule].make(judged, hours * 3600.0)] for rule, hours in rules_h.items()
    }
    learnt = [policy.spot_network(path) for path in paths]
    methods["learnt"] = [policy.LearntSpotPolicy.of(each, worlds, laws) for each in learnt]
    start = _new_network()
    methods["untrained"] = [policy.LearntSpotPolicy.of(start, worlds, laws)]
    methods["random"] = [policy.RandomOffers(observer=task.SpotObserver.of(worlds, laws))]
    for method, policies in methods.items():
        for seed, each in enumerate(policies):
            shares = 100 * table.shares_of(each, judged, most)
            for case, share in zip(judged, shares.tolist(), strict=True):
                yield {
                    "suite": suite,
                    "method": method,
                    "policy": seed,
                    "instance": case.name,
                    "share_percent": share,
                }


def _settings() -> ppo_config.PPOConfig:
    return ppo_config.PPOConfig(
        num_steps=128,
        discount=0.9,
        learning_rate=3e-4,
        entropy_coefficient=0.0,
        value_coefficient=0.25,
        max_gradient_norm=2.0,
    )


def _new_network() -> networks.ActorCritic:
    """Network of seed 0 before training: nearly the ratings that it starts from."""
    tasks = batch.SpotTasks(1, 0)
    learner = trainer.PPOTrainer.local(tasks, _settings(), 0, 1, candidate_size=task.OFFER_SIZE)
    return learner.network


def _train(config: Config, worlds: spot_worlds.SpotTrainingWorlds, path: Path) -> bool:
    """Train to the end or until Ctrl-C; returns whether the training is complete."""
    tasks = batch.SpotTasks(config.envs, config.seed, worlds)
    learner = trainer.PPOTrainer.local(
        tasks, _settings(), config.seed, config.steps, candidate_size=task.OFFER_SIZE
    )
    curve = config.out / f"curve-{config.seed}.csv"
    return ppo_training.train_to_the_end(learner, path, curve, resume=config.resume)
