"""Bytes below the even split where bytes count: cases that can be worked out by hand."""

from dataclasses import dataclass

import pytest
from epoch_cases import FREE_PAIR, HandWorld
from strategies import plan, unit_workload

from agents.decision.levels import level_of
from agents.decision.situation import Decision, Situation
from agents.hi_ppo.policies import shipped_files
from agents.hi_ppo.schedulers import policy_scheduler
from agents.trainers.table import trainer_named
from des import Plan
from scenarios.study.targets.measurement_size import SchedulerColumn, Scope
from scenarios.study.targets.preferred_bytes import measure, preferred
from scenarios.study.targets.references import Communication, communication_of
from scenarios.study.targets.sizes import SHORT

LEFT, SPLIT = plan(0, 0, 0, 0), plan(0, 0, 1, 1)
JOB = unit_workload([(1, 1)] * 4, num_microbatches=2, message_bytes=2.0)
WORLD = HandWorld(epochs=(FREE_PAIR,), workload=JOB)
SCOPE = Scope(sizes=SHORT, trainer=trainer_named("ideal"))


@dataclass
class FromWeight:
    """Stays in one domain from a weight of communication on."""

    least: float

    def begin(self) -> None:
        """Nothing is remembered."""

    def decide(self, situation: Situation) -> Decision:
        chosen: Plan = LEFT if situation.preference.communication >= self.least else SPLIT
        return Decision(plan=chosen, level=level_of(situation.last_plan, chosen))


def column(least: float) -> SchedulerColumn:
    def propose(*_: object) -> tuple[Plan, ...]:
        return (SPLIT,)

    return SchedulerColumn(
        name="by weight", make=lambda: FromWeight(least), scope=SCOPE, propose=propose
    )


@pytest.mark.parametrize(("least", "sent"), [(0.5, 0.0), (0.8, 0.0), (0.9, 1.0)])
def test_the_quickest_plan_that_saves_enough_is_taken_else_that_of_fewest_bytes(least, sent):
    """Two microbatches send 2 bytes each way over the border; one domain sends nothing."""
    even = communication_of(FREE_PAIR, JOB, SPLIT)
    alone = communication_of(FREE_PAIR, JOB, LEFT)
    assert (even.cost_bytes, alone.cost_bytes) == (8.0, 0.0)
    found = preferred(column(least), WORLD, 0, even.cost_bytes)

    assert found.sent == sent
    assert found.time == (1.0 if sent else alone.iteration_s / even.iteration_s)
    assert found.halved_sent == 0.5
    assert found.halved_time <= 1.0


def even_of(*_: object) -> Communication:
    return communication_of(FREE_PAIR, JOB, SPLIT)


def test_the_price_stands_beside_what_is_saved():
    target = measure(column(0.5), [WORLD], even_of)

    assert (target.value, target.verdict) == (1.0, "met")
    assert target.notes[0] == "30 % saved in 1 of 1 draws"
    assert target.notes[1].startswith("its price: +")
    assert "50.0 % saved for" in target.notes[2]
    assert "nan" not in " ".join(target.notes)


def test_methods_without_weights_and_worlds_without_an_even_split_are_not_measured():
    make, _ = policy_scheduler(shipped_files()[0])
    planner = SchedulerColumn(name="planner", make=make, scope=SCOPE)
    for target in (
        measure(planner, [WORLD], even_of),
        measure(column(0.5), [WORLD], lambda *_: None),
    ):
        assert target.verdict == "not measured"
