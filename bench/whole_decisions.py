"""CPU time of one decision over all families of plans, by number of domains."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agents.decision.families import FAMILIES
from agents.decision.plan_space import PlanSpace
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import WholeProblem
from agents.planners.whole.search_whole import search_whole
from bench.report import column
from bench.timing import Contestant, Effort, race
from bench.worlds import MODEL, SEED
from des import PlaneWorlds
from des.schedules.registry import schedule_orders

NUMBERS_OF_DOMAINS, NUM_SEQUENCES = (4, 10, 32, 64), 32
MEAN_BANDWIDTH_BYTES_PER_S = 0.6e9


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRow:
    """A decision on a drawn world."""

    num_domains: int = column("domains")
    decision_ms: float = column("CPU time of a decision [ms]", ",.0f")
    spread_percent: float = column("± %", ".0f")


def measure(effort: Effort) -> list[WholeRow]:
    """Time decisions on worlds of several sizes; the first call, which compiles, does not count."""
    numbers = NUMBERS_OF_DOMAINS[:1] if effort.is_quick else NUMBERS_OF_DOMAINS
    calls = [Contestant(name=str(number), call=_call(number)) for number in numbers]
    return [
        WholeRow(
            num_domains=int(timing.name),
            decision_ms=1e3 / timing.items_per_cpu_s,
            spread_percent=1e2 * timing.spread_fraction,
        )
        for timing in race(calls, effort)
    ]


def _call(num_domains: int) -> Callable[[], object]:
    worlds = PlaneWorlds(
        num_domains=num_domains, mean_bandwidth_bytes_per_s=MEAN_BANDWIDTH_BYTES_PER_S
    )
    problem = WholeProblem(
        topology=worlds.draw(np.random.default_rng(SEED)).at_start(),
        job=TrainingJob(model=MODEL, num_sequences=NUM_SEQUENCES),
        space=PlanSpace(families=FAMILIES),
    )

    def decide() -> object:
        schedule_orders.cache_clear()  # another network has other times, so none are at hand
        return search_whole(problem)

    return decide
