"""Measure how much slower training gets as bandwidths and latencies fluctuate more and more."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from des.base.checks import LARGEST_COUNT, nearest
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command
from des.base.document import DOCUMENT, plain_json
from des.base.flags import option, to_dict
from des.base.lazy import lazy_imports
from des.plan.plan_texts import PERFECT_DEVICES
from scenarios.frame.files import write_json
from scenarios.frame.outputs import OutputFlags, repetition_of, write_outputs
from scenarios.frame.run_folder import RunFolder
from scenarios.suites import suite

with lazy_imports(__name__):
    import pandas as pd

    from agents.hi_ppo import schedulers as hi_ppo_schedulers
    from agents.planners import names
    from scenarios.study.robustness import curves as robustness_curves
    from scenarios.study.robustness import robustness_page
    from scenarios.study.targets import measurement_size


PROG = "python -m scenarios.robustness"
SUITES = ("eval_calm", "eval_held")
_QUICK = {"num_worlds": 2, "num_epochs": 4, "fluctuations": (0.0, 0.6), "jitters": (0.2,)}
_EXAMPLES = f"""\
examples:
  {PROG} --out runs/robustness
  {PROG} --num-worlds 2 --num-epochs 4 --fluctuations 0,0.3,0.6 --jitters 0.2 --out runs/small
  {PROG} --checkpoint runs/hi_ppo/policies.safetensors --planners search_once,search_h8,atlas_h8

files written to --out, besides config.json:
  robustness.csv   one row per method, fluctuation, jitter, world and draw: the slowdown
  robustness.json  means with 95 % intervals over worlds, and which methods have no plan where
  robustness.png   the curves, a panel for each jitter (--figures: other formats)
  report.html      the same as a page, with the plan of a search in the first world

exit codes: 0 done; 2 a flag or a file is wrong; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(OutputFlags):
    """Flags of the robustness curves."""

    out: Path = option(Path("runs/robustness"), "folder to make")
    checkpoint: Path | None = option(None, "trained policies; none: the first ones shipped")
    planners: tuple[str, ...] = option(
        (), "planners by name", default_text="those of milliseconds, and searches"
    )
    suite: str = option("eval_held", f"suite of worlds, one of {', '.join(SUITES)}")
    num_worlds: int = option(8, "worlds of the suite, from the first one on")
    num_draws: int = option(1, "draws of each world")
    num_epochs: int = option(32, "first epochs of a draw")
    fluctuations: tuple[float, ...] = option(
        (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
        "bandwidth fluctuations, as fractions of the nominal bandwidth",
    )
    jitters: tuple[float, ...] = option(
        (0.0, 0.2, 0.6), "latency jitters, as fractions of the nominal latency"
    )
    seed: int = option(0, "seed of the worlds, and of the first draw")
    quick: bool = option(
        False, "two worlds, four epochs and two fluctuations: seconds", is_recorded=False
    )

    def __post_init__(self) -> None:
        for field in ("num_worlds", "num_draws", "num_epochs"):
            value = getattr(self, field)
            if not 1 <= value <= LARGEST_COUNT:
                raise UsageError(f"{PROG}: {field} must be at least 1, got {value}")
        if self.seed < 0:
            raise UsageError(f"{PROG}: seed must be at least 0, got {self.seed}")
        if self.suite not in SUITES:
            raise UsageError(
                f"{PROG}: suite must be one of {', '.join(SUITES)}, got {self.suite!r}"
            )
        for field in ("fluctuations", "jitters"):
            values = getattr(self, field)
            if (
                not values
                or len(set(values)) < len(values)
                or not all(0.0 <= value < 1.0 for value in values)
            ):
                raise UsageError(
                    f"{PROG}: {field} must be one or more from 0 to below 1, each once, "
                    f"got {values}"
                )
        for name in self.planners:
            if name not in robustness_curves.planner_names():
                hint = nearest(name, robustness_curves.planner_names())
                raise UsageError(f"{PROG}: unknown name {name!r} in planners; {hint}")


@command(Config, PROG, __doc__, _EXAMPLES, quick=_QUICK)
def main(config: Config) -> None:
    """Run the command on its settings."""
    choice = config.choice()
    policy = hi_ppo_schedulers.make_shared_scheduler(config.checkpoint)
    wanted = config.planners or robustness_curves.default_names()
    schedulers = {
        name: make for name, make in robustness_curves.replanning().items() if name in wanted
    }
    study = robustness_curves.Study(
        held={
            name: planner
            for name, planner in robustness_curves.held_planners().items()
            if name in wanted
        },
        schedulers=schedulers if policy is None else {names.POLICY: policy, **schedulers},
        swings=[
            robustness_curves.Swing(fluctuation=fluctuation, jitter=jitter)
            for jitter, fluctuation in product(config.jitters, config.fluctuations)
        ],
        num_draws=config.num_draws,
        num_epochs=config.num_epochs,
        seed=config.seed,
    )
    worlds = (
        suite(config.suite)
        .with_domains(*measurement_size.SMALL)
        .worlds(config.num_worlds, config.seed)
    )
    with RunFolder.created(config.out, to_dict(config)) as folder:
        frame, left_out = robustness_curves.robustness_rows(study, worlds)
        if frame.empty:
            raise UsageError(
                f"{PROG}: planners must hold one that has a plan, got {config.planners}"
            )
        means = robustness_curves.means_of(frame)
        summary = {
            "has_policy": policy is not None,
            "curves": means,
            "left_out": [asdict(one) for one in left_out],
        }
        write_json(folder.path / "robustness.json", plain_json(summary))
        page = robustness_page.robustness_report(frame, worlds[0], repetition_of(PROG, config))
        write_outputs(folder.path, choice, page, {"robustness": frame})
    DOCUMENT.add(**summary, devices=PERFECT_DEVICES, out=config.out)
    _show(config, means, left_out, has_policy=policy is not None)


def _show(
    config: Config,
    means: pd.DataFrame,
    left_out: list[robustness_curves.LeftOut],
    *,
    has_policy: bool,
) -> None:
    """Print the ends of the curves, the flattest first."""
    furthest = means[
        (means["fluctuation"] == max(config.fluctuations))
        & (means["jitter"] == max(config.jitters))
    ]
    sys.stdout.write(
        f"slower with bandwidths ±{100 * max(config.fluctuations):.0f} % and latencies "
        f"±{100 * max(config.jitters):.0f} % than on held links; {PERFECT_DEVICES}:\n"
    )
    slowdowns = furthest.set_index("method")["mean"].sort_values(kind="stable")
    for name, slowdown in zip(slowdowns.index, slowdowns.tolist(), strict=True):
        sys.stdout.write(f"{name:24} {100 * slowdown:+8.2f} %\n")
    if not has_policy:
        sys.stdout.write(
            f"{names.POLICY} is left out: no policies are shipped, and no --checkpoint is given\n"
        )
    for name in dict.fromkeys(one.method for one in left_out):
        count = sum(one.method == name for one in left_out)
        sys.stdout.write(f"{name} has no plan on {count} of {config.num_worlds} worlds\n")
    sys.stdout.write(f"written: {config.out}\n")
