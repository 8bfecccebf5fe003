"""What each part of Hi-PPO's placement is worth: gaps on held-out networks with parts left out."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.progress import track
from rich.table import Table

from agents.devices import use_torch_threads
from agents.epochs import Situation
from agents.hi_ppo.coordinator import QUICK
from agents.hi_ppo.placement_checkpoint import load_placement
from agents.hi_ppo.placement_policy import PlacementPolicy
from agents.hi_ppo.policies import Policies, shipped
from agents.hi_ppo.proposals import Proposer
from agents.planners.search import search
from agents.task import Replacement
from des import Corrections, InfeasiblePlacementError, Plan
from des.checks import require_count, require_seed
from des.command import EXIT_CODES, exit_code_of
from des.compiled.simulate import simulate_compiled
from scenarios.config import option, parse, to_dict
from scenarios.files import write_csv
from scenarios.run_folder import RunFolder
from scenarios.statistics import mean_and_interval
from scenarios.suites import SuiteWorld, suite

PROG = "python -m scenarios.ablations"

MISJUDGED = Corrections(wan_bandwidth_factor=0.7, wan_latency_factor=1.2)
"""How the links of ``uncalibrated`` really are, where the figures that are planned by say 1."""

_SUITES = ("eval_static", "hard")
_MOST_EXACT = 5

_EPILOG = f"""\
Networks are half those of eval_static, half those of hard at a drawn epoch. The gap is the time of
an iteration over that of the best plan known: proven up to 5 domains, of a search above.

variants:
  hi_ppo         policy and look-ahead
  no_look_ahead  the policy's likeliest order, with its own depth and shares
  no_policy      the same look-ahead from orders drawn at random
  no_encoder     policy without messages between domains (--no-encoder)
  flat           as no_encoder and no_look_ahead
  uncalibrated   links are 0.7 times as fast and 1.2 times as long as the figures planned by say
  calibrated     the same links, known

files written to --out: config.json, ablations.csv

exit codes: 0 done; 2 a flag is wrong or a checkpoint cannot be read; {EXIT_CODES}
"""

Decide = Callable[[Situation], Plan]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What is compared; the fields are the flags."""

    out: Path = option(Path("runs/ablations"), "new or empty folder of the run")
    checkpoint: Path | None = option(None, "trained policies; none: those shipped of seed 0")
    no_encoder: Path | None = option(None, "placement.pt of train_hi_ppo --rounds 0")
    num_domains: tuple[int, ...] = option((4, 5, 6, 10), "numbers of domains")
    num_worlds: int = option(32, "networks of each")
    seed: int = option(0, "seed of the worlds; the same for all variants")

    def __post_init__(self) -> None:
        require_count(PROG, "num_worlds", self.num_worlds)
        require_seed(PROG, "seed", self.seed)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> None:
    config = parse(Config, argv, prog=PROG, description=__doc__ or "", epilog=_EPILOG)
    use_torch_threads(1)
    policies = Policies.load(config.checkpoint or shipped())
    without = None if config.no_encoder is None else load_placement(config.no_encoder)
    folder = RunFolder.create(config.out)
    folder.write_config(to_dict(config))
    console = Console(highlight=False)
    frame = compared(config, policies.placement, without, console)
    write_csv(folder.path / "ablations.csv", frame)
    console.print(_table(frame))
    sys.stdout.write(f"rows: {folder.path / 'ablations.csv'}\n")


def compared(
    config: Config, policy: PlacementPolicy, without: PlacementPolicy | None, console: Console
) -> pd.DataFrame:
    """One row a network and variant: ``gap``, and ``response_s``, which is a timing."""
    variants = variants_of(policy, without)
    rows = []
    situations = list(_situations(config))
    for name, situation in track(situations, "deciding", console=console):
        for names, corrections in ((tuple(variants), Corrections()), (("hi_ppo",), MISJUDGED)):
            real = replace(situation, corrections=corrections)
            best_s = _best_s(real)
            asked = {name: (variants[name], real) for name in names}
            if corrections == MISJUDGED:
                decide = variants["hi_ppo"]
                asked = {"calibrated": (decide, real), "uncalibrated": (decide, situation)}
            for variant, (decide, seen) in asked.items():
                found_s, response_s = _judged(decide, seen, real)
                rows.append(
                    {
                        "network": name,
                        "num_domains": situation.topology.num_domains,
                        "variant": variant,
                        "gap": found_s / best_s - 1.0,
                        "response_s": response_s,
                    }
                )
    return pd.DataFrame(rows)


def variants_of(policy: PlacementPolicy, without: PlacementPolicy | None) -> dict[str, Decide]:
    """Deciders by name."""
    variants = {
        "hi_ppo": _looking_ahead(Proposer(policy, look_ahead=QUICK)),
        "no_look_ahead": _alone(policy),
        "no_policy": _looking_ahead(Proposer(None, look_ahead=QUICK)),
    }
    if without is not None:
        variants["no_encoder"] = _looking_ahead(Proposer(without, look_ahead=QUICK))
        variants["flat"] = _alone(without)
    return variants


def _looking_ahead(proposer: Proposer) -> Decide:
    return lambda situation: proposer.propose(situation, num_plans=1).plans[0]


def _alone(policy: PlacementPolicy) -> Decide:
    proposer = Proposer(policy)

    def decide(situation: Situation) -> Plan:
        judge = proposer.judge_of(situation.workload, situation.topology, situation.corrections)
        job = judge.job_of(situation.topology)
        plans, row = policy.best_plan(proposer.features_of(situation, judge, job), judge, job)
        return judge.plan(plans, row)

    return decide


def _judged(decide: Decide, seen: Situation, real: Situation) -> tuple[float, float]:
    """Iteration time of what is decided, and the wall time of the second decision. [s]"""
    decide(seen)
    began_s = time.perf_counter()
    plan = decide(seen)
    response_s = time.perf_counter() - began_s
    result = simulate_compiled(real.topology, real.workload, plan, real.corrections)
    if not result.fits_memory:
        raise InfeasiblePlacementError(f"ablations: plan {plan} does not fit into memory")
    return result.makespan_s, response_s


def _best_s(situation: Situation) -> float:
    found = search(
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
            yield f"{world.name}-{num_domains}", situation_of(world, draw=config.seed, epoch=epoch)


def situation_of(world: SuiteWorld, *, draw: int, epoch: int) -> Situation:
    """The first decision on the network of an epoch."""
    return Situation(
        topology=world.epoch_topology(draw, epoch).at_start(),
        base=world.topology,
        workload=world.workload,
        epoch=epoch,
        epoch_s=world.epoch_s,
        iterations_per_epoch=world.iterations_per_epoch,
        replacement=Replacement(),
    )


def _table(frame: pd.DataFrame) -> Table:
    table = Table(title="gap to the best plan known [%]: mean ± 95 % interval / 95th percentile")
    sizes = sorted(frame["num_domains"].unique())
    table.add_column("variant")
    for size in sizes:
        table.add_column(f"K = {size}", justify="right")
    for variant in frame["variant"].unique():
        cells = []
        for size in sizes:
            own = frame[(frame["variant"] == variant) & (frame["num_domains"] == size)]
            gaps = 100.0 * own["gap"].to_numpy()
            found = mean_and_interval(gaps)
            tail = own["gap"].quantile(0.95) * 100.0
            cells.append(f"{found.mean:.2f} ± {found.half_width:.2f} / {tail:.1f}")
        table.add_row(variant, *cells)
    return table


if __name__ == "__main__":
    raise SystemExit(main())
