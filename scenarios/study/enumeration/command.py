"""Compare the search with the best of all plans of Megatron-LM, on small worlds.

With --sureness, what an answer says of its doubt is checked instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from agents.trainers.table import trainer_named
from des import InfeasiblePlacementError, Topology, read_topology
from des.base.checks import require_seed
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from agents.decision import job_files
    from agents.decision.training_job import TrainingJob
    from agents.search import bound_search, search
    from scenarios.study.enumeration import drawn_worlds, exhaustive, sure_answers

PROG = "python -m scenarios.enumerate_plans"
RowT = TypeVar("RowT")

_EXAMPLES = f"""\
examples:
  {PROG} --network world.yaml --job job.json
  {PROG} --drawn 6
  {PROG} --drawn 20 --seed 100 --json
  {PROG} --sureness --drawn 200

All plans: tensor, data and expert degrees, sizes of microbatches, recomputation, orders of sites,
GPUs and layers of each site, 1F1B and interleaved schedules, and copies over sites. Layers of the
stages of a site differ by one layer at most. Plans that a proven bound puts over the search's step
are not simulated. A world of three sites takes a few minutes.

--sureness checks each case of "What would change the answer" by a search that knows nothing of the
answer, and whether the time under true figures drawn by chance lies within the range it states.

exit codes: 0 done; 2 a flag or a file is wrong; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of the enumeration."""

    network: str | None = option(None, "topology file of at most 3 sites", is_file=True)
    job: Path | None = option(None, "job file, for --network", is_file=True)
    drawn: int = option(0, "worlds of 2 or 3 sites to draw", default_text="0, or 6 without a file")
    seed: int = option(0, "seed of the first world drawn", check=require_seed)
    sureness: bool = option(False, "check what the answers say of their doubt, not the search")
    draws: int = option(5, "true figures drawn a world, for --sureness")

    def __post_init__(self) -> None:
        if (self.network is None) != (self.job is None):
            raise UsageError(f"{PROG}: network and job must be given together, got one of them")
        if self.drawn < 0:
            raise UsageError(f"{PROG}: drawn must be at least 0, got {self.drawn}")
        if self.draws < 1:
            raise UsageError(f"{PROG}: draws must be at least 1, got {self.draws}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumerationRow:
    """Steps of the search and of the best of all plans on a world.

    ``gap_fraction`` is what the search's step is longer by, 0 where no plan is quicker; ``plan`` is
    the quicker one.
    """

    world: str
    model: str
    search_s: float
    enumerated_s: float
    gap_fraction: float
    plan: str
    num_plans: int
    num_simulated: int

    def __str__(self) -> str:
        better = f"; {self.plan}" if self.plan else ", no plan is quicker"
        return (
            f"{self.world}, {self.model}: search {self.search_s:.3f} s, all plans "
            f"{self.enumerated_s:.3f} s, gap {self.gap_fraction:.2%} ({self.num_simulated} of "
            f"{self.num_plans} plans simulated){better}"
        )


@command(Config, PROG, __doc__, _EXAMPLES)
def main(config: Config) -> None:
    """Run the command on its settings."""
    if config.sureness:
        _check_sureness(config)
        return
    rows = _rows(config, _row)
    gaps = [row.gap_fraction for row in rows]
    mean, worst = (sum(gaps) / len(gaps), max(gaps)) if gaps else (None, None)
    DOCUMENT.add(worlds=[asdict(row) for row in rows], mean_gap=mean, worst_gap=worst)
    if mean is not None and worst is not None:
        sys.stdout.write(
            f"{len(rows)} worlds: search over enumeration {mean:.2%} in the mean, at worst "
            f"{worst:.2%}\n"
        )


def _check_sureness(config: Config) -> None:
    rows = _rows(config, partial(sure_answers.sure_row, num_draws=config.draws))
    cases, draws = sum(row.num_cases for row in rows), sum(row.num_draws for row in rows)
    against, held = sum(row.num_contradicted for row in rows), sum(row.num_held for row in rows)
    DOCUMENT.add(worlds=[asdict(row) for row in rows], num_contradicted=against, num_held=held)
    if rows:
        sys.stdout.write(
            f"{len(rows)} worlds: {against} of {cases} cases contradicted, {held / draws:.1%} of "
            f"{draws} draws in the range\n"
        )


def _rows(config: Config, row_of: Callable[[str, Topology, TrainingJob], RowT]) -> list[RowT]:
    """Rows of all worlds that the job fits into, each printed as soon as it is known."""
    rows: list[RowT] = []
    for name, topology, job in _cases(config):
        try:
            rows.append(row_of(name, topology, job))
        except InfeasiblePlacementError as error:
            _note(f"{name}: left out: {error}")
            continue
        sys.stdout.write(f"{rows[-1]}\n")
        sys.stdout.flush()
    return rows


def _cases(config: Config) -> Iterator[tuple[str, Topology, TrainingJob]]:
    """Worlds and jobs with their names, that of the file first."""
    if config.network is not None and config.job is not None:
        yield config.network, read_topology(config.network), job_files.read_job(config.job)[0]
    num_drawn = config.drawn or (6 if config.network is None else 0)
    for seed in range(config.seed, config.seed + num_drawn):
        yield f"seed {seed}", *drawn_worlds.drawn_case(seed)


def _row(name: str, topology: Topology, job: TrainingJob) -> EnumerationRow:
    trainer = trainer_named("megatron")
    found = bound_search.search_bound(
        search.PlanRequest(topology=topology, job=job, trainer=trainer)
    )
    search_s = found.best.figures.step_s
    best = exhaustive.enumerate_all(
        topology, job, trainer, search_s, lambda text: _note(f"{name}: {text}")
    )
    return EnumerationRow(
        world=name,
        model=job.model,
        search_s=search_s,
        enumerated_s=best.step_s,
        gap_fraction=search_s / best.step_s - 1.0,
        plan=best.plan,
        num_plans=best.num_plans,
        num_simulated=best.num_simulated,
    )


def _note(text: str) -> None:
    sys.stderr.write(f"{text}\n")
