"""Time of the lower bound of a step, and what it adds to the work."""

from dataclasses import dataclass
from functools import partial

from agents.decision.families import FAMILIES, SYNCHRONOUS
from agents.decision.plan_space import PlanSpace
from agents.decision.training_job import TrainingJob
from agents.decision.whole_plan import WholeProblem
from agents.planners.bounds.step_bound import step_lower_bound_s
from bench.report import column
from bench.timing import Contestant, Effort, race
from bench.worlds import DRAWN, MODEL, SEED, mesh

NUM_SEQUENCES = 512
TITLE = f"Lower bound of a step, {MODEL}, {NUM_SEQUENCES} sequences"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundRow:
    """The bound of one decision."""

    num_domains: int = column("domains")
    families: str = column("families")
    bound_ms: float = column("time [ms]", ",.1f")
    spread_percent: float = column("± %", ".0f")
    over_work: float = column("bound over the work alone", ".3f")
    binds: str = column("binds")


def measure(effort: Effort) -> list[BoundRow]:
    """Time bounds over all families, and over those that leave the training as it is."""
    found = []
    for num_domains in (3,) if effort.is_quick else (4, 10, 32, 64):
        for name, families in (("all", FAMILIES), ("synchronous", SYNCHRONOUS)):
            problem = WholeProblem(
                topology=mesh(num_domains, DRAWN).epoch_of(SEED),
                job=TrainingJob(model=MODEL, num_sequences=NUM_SEQUENCES),
                space=PlanSpace(families=families),
            )
            call = partial(step_lower_bound_s, problem)
            (timing,) = race([Contestant(name=name, call=call)], effort)
            bound = call()
            found.append(
                BoundRow(
                    num_domains=num_domains,
                    families=name,
                    bound_ms=1e3 / timing.items_per_s,
                    spread_percent=1e2 * timing.spread_fraction,
                    over_work=bound.step_s / bound.work_s,
                    binds=bound.binds,
                )
            )
    return found
