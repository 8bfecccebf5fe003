"""Ablations of Hi-PPO's placement: gaps on held-out networks with parts left out."""

from __future__ import annotations

import hashlib
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agents.trainers.ideal import IDEAL
from agents.trainers.table import trainer_named
from des import Corrections
from des.base.checks import require_count, require_seed
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command
from des.base.document import DOCUMENT
from des.base.flags import option, to_dict
from des.base.lazy import lazy_imports
from scenarios.frame.files import read_csv, write_csv
from scenarios.frame.outputs import OutputFlags, repeated_settings, repetition_of, write_outputs
from scenarios.frame.run_folder import RunFolder
from scenarios.suites import suite

with lazy_imports(__name__):
    import pandas as pd
    from rich import progress as rich_progress
    from rich.console import Console

    from agents.decision import frozen_network, run_epochs
    from agents.decision.situation import Situation
    from agents.hi_ppo import policies
    from agents.hi_ppo.placement.placement_checkpoint import PlacementNet
    from agents.planners.search import search
    from agents.ppo import devices
    from des.base import console as base_console
    from des.compiled import simulate
    from scenarios.study.ablations import ablations_page
    from scenarios.study.ablations import variants as ablations_variants

RowsOf = Callable[[str, "Situation"], list[dict[str, object]]]

PROG = "python -m scenarios.ablations"

NETWORKS = "networks"
"""Within the run folder; one file a network, ``<network>-<digest of the weights>.csv``."""

MISJUDGED = Corrections(wan_bandwidth_factor=0.7, wan_latency_factor=1.2)
"""True links of ``uncalibrated``, relative to the figures used for planning."""

_SUITES = ("eval_static", "hard")
_MOST_EXACT = 5

_EPILOG = f"""\
Networks are half those of eval_static, half those of hard at a drawn epoch. The gap is the time of
an iteration over that of the best plan known: proven up to 5 domains, of a search above, which a
variant may beat. Flags of several files take one a training seed: F,G,H. Means are over networks
and seeds, and so are the intervals.

variants, each with the look-ahead and alone (the likeliest order, with its own depth and shares):
  hi_ppo         as it is trained
  pure_ppo       trained without the best orders of a look-ahead: train placement --imitation 0
  no_encoder     trained without messages between domains: train placement --rounds 0
  no_preference  trained without the preference as an input: train placement --no-sees-preference
and
  untrained      hi_ppo with new weights, which have learnt nothing
  random         the look-ahead from orders drawn at random
  neighbours     the look-ahead from chains of nearest neighbours
  uncalibrated   hi_ppo; true links have 0.7 of the bandwidth and 1.2 of the latency it assumes
  calibrated     hi_ppo that knows these links

With --trainer megatron the same policies and controls propose, with the look-ahead, to what binds
plans to GPUs; beside them a few rules, the best of theirs, and the search of bound plans. The gap
is over the quickest bound plan of all of them.

What the preference is worth where it counts: python -m scenarios.ablations.preference. A
flat policy of one world: python -m scenarios.ablations.flat.

examples:
  {PROG} --out runs/ablations
  {PROG} --resume --out runs/ablations
  {PROG} --trainer megatron --num-domains 5,10 --num-worlds 6 --out runs/bound
  {PROG} --pure-ppo runs/pure/placement.safetensors --num-domains 4,5 --out runs/pure_ppo

It ends with what learning is worth: paired differences to what has learnt nothing.

files written to --out: config.json, report.html, gaps.png, ablations.csv, and {NETWORKS}/ with a
file for each compared network, which --resume with the same flags reads. A gap is empty where no
depth fits into memory

exit codes: 0 done; 2 a flag is wrong or a checkpoint cannot be read; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(OutputFlags):
    """Flags of the ablations."""

    out: Path = option(
        Path("runs/ablations"), "run folder: new or empty, or with --resume the one to continue"
    )
    resume: bool = option(False, "continue the run in --out, by the same flags")
    checkpoint: tuple[Path, ...] = option((), "trained policies by seed; none: those shipped")
    pure_ppo: tuple[Path, ...] = option(
        (), "files of train placement --imitation 0, placement.safetensors"
    )
    no_encoder: tuple[Path, ...] = option((), "policies of train placement --rounds 0")
    no_preference: tuple[Path, ...] = option((), "policies of train placement --no-sees-preference")
    num_domains: tuple[int, ...] = option((4, 5, 6, 10), "numbers of domains")
    num_worlds: int = option(32, "networks for each number of domains")
    seed: int = option(0, "seed of the worlds; the same for all variants")
    look_ahead: str = option("quick", "quick or first: of every epoch, of first plans")
    trainer: str = option(
        IDEAL.name,
        "perfect devices (ideal), or a trainer such as megatron: what is proposed is bound then",
    )

    def __post_init__(self) -> None:
        require_count(PROG, "num_worlds", self.num_worlds)
        require_seed(PROG, "seed", self.seed)
        for name in _SUITES:
            suite(name).with_domains(*self.num_domains)  # refuses numbers that it has no worlds of
        trainer_named(self.trainer)
        if self.look_ahead not in ablations_variants.LOOK_AHEADS:
            raise UsageError(
                f"{PROG}: look_ahead must be {' or '.join(ablations_variants.LOOK_AHEADS)}, "
                f"got {self.look_ahead!r}"
            )


@command(Config, PROG, __doc__, _EPILOG)
def main(config: Config) -> None:
    """Run the command on its settings."""
    choice = config.choice()
    devices.use_torch_threads(1)
    others = {name: getattr(config, name) for name in ablations_variants.TRAINED_WITHOUT}
    given = ablations_variants.policies_given(config.checkpoint, others)
    rows_of = _rows_by(config, given)
    console = base_console.FittedConsole()
    with RunFolder.begun_or_resumed(
        config.out, repeated_settings(config), PROG, resume=config.resume, noted=to_dict(config)
    ) as folder:
        frame = compare_variants(config, rows_of, console, folder.path / NETWORKS)
        worth = [str(one) for one in ablations_page.worth_of(frame)]
        page = ablations_page.ablation_report(frame, worth, repetition_of(PROG, config))
        write_outputs(folder.path, choice, page, {"ablations": frame})
    DOCUMENT.add(rows=frame, worth=worth, out=config.out)
    console.print(ablations_page.ablation_table(frame))
    for line in worth:
        console.print(line, soft_wrap=True)
    sys.stdout.write(f"rows: {folder.path / 'ablations.csv'}\n")


def _rows_by(config: Config, given: Mapping[str, Sequence[PlacementNet]]) -> RowsOf:
    """Rows of plans of perfect devices, or of plans that a trainer runs."""
    how, trainer = ablations_variants.LOOK_AHEADS[config.look_ahead], trainer_named(config.trainer)
    if trainer.is_ideal:
        return partial(_rows_of, variants=ablations_variants.variants_of(given, how))
    sketches = ablations_variants.sketches_of(given, how)
    return partial(ablations_variants.bound_rows, sketches=sketches, trainer=trainer)


def compare_variants(config: Config, rows_of: RowsOf, console: Console, kept: Path) -> pd.DataFrame:
    """One row per network, variant and seed: ``gap``, and ``response_s``, which is a timing.

    Parameters
    ----------
    rows_of
        Rows of a network by its name and its situation.
    kept
        Folder with a file for each network, written when it has been compared; files for the same
        weights are read instead.
    """
    kept.mkdir(exist_ok=True)
    weights = _digest_of_files(config)
    frames = []
    for name, situation in rich_progress.track(
        list(_situations(config)), "deciding", console=console
    ):
        path = kept / f"{name}-{weights}.csv"
        if not path.exists():
            write_csv(path, pd.DataFrame(rows_of(name, situation)))
        frames.append(read_csv(path))
    return pd.concat(frames, ignore_index=True)


def _digest_of_files(config: Config) -> str:
    """Digest of all weights that are compared, as part of a file name."""
    names = ("checkpoint", *ablations_variants.TRAINED_WITHOUT)
    given = [path for name in names for path in getattr(config, name)]
    files = given if config.checkpoint else [*policies.shipped_files(), *given]
    return hashlib.sha256("".join(map(policies.digest_of, files)).encode()).hexdigest()[:12]


def _rows_of(
    name: str, situation: Situation, variants: Sequence[ablations_variants.Variant]
) -> list[dict[str, object]]:
    """Rows of one network."""
    own = [one for one in variants if one.name == ablations_variants.HI_PPO and one.looks_ahead]
    real = replace(situation, corrections=MISJUDGED)
    best_s, real_best_s = _best_s(situation), _best_s(real)
    judged = [
        (one.title, one, _judge(one.decide, situation, situation), best_s) for one in variants
    ]
    for title, seen in (("uncalibrated", situation), ("calibrated", real)):
        judged += [(title, one, _judge(one.decide, seen, real), real_best_s) for one in own]
    return [
        {
            "network": name,
            "num_domains": situation.topology.num_domains,
            "variant": title,
            "seed": one.seed,
            "gap": found_s / least_s - 1.0,
            "response_s": response_s,
        }
        for title, one, (found_s, response_s), least_s in judged
    ]


def _judge(
    decide: ablations_variants.Decide, seen: Situation, real: Situation
) -> tuple[float, float]:
    """Iteration time of what is decided, NaN if it does not fit; wall time of the decision. [s]"""
    decide(seen)  # what does not change between situations of a job is worked out once
    began_s = time.perf_counter()
    plan = decide(seen)
    response_s = time.perf_counter() - began_s
    if plan is None:
        return math.nan, response_s
    result = simulate.simulate_compiled(real.topology, real.workload, plan, real.corrections)
    return result.makespan_s if result.fits_memory else math.nan, response_s


def _best_s(situation: Situation) -> float:
    found = search.search(
        situation.topology,
        situation.workload,
        situation.corrections,
        is_exact=situation.topology.num_domains <= _MOST_EXACT,
    )
    return found.makespan_s


def _situations(config: Config) -> Iterator[tuple[str, Situation]]:
    for num_domains in config.num_domains:
        for index in range(config.num_worlds):
            worlds = suite(_SUITES[index % len(_SUITES)]).with_domains(num_domains)
            world = worlds.world(index // len(_SUITES), config.seed)
            epoch = (7 * index) % world.num_epochs
            topology = frozen_network.freeze_topology(world, config.seed, epoch)
            yield (
                f"{world.name}-{num_domains}",
                run_epochs.epoch_situation(world, topology, epoch, None),
            )
