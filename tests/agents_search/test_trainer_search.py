"""Searches network after network: what they share, forget or remember changes no plan."""

from collections.abc import Callable, Hashable

import pytest
from bound_cases import job, site, sites

from agents.search import trainer_search
from agents.search.bind import PlanBinder
from agents.search.sketches import quickest_bound
from agents.search.trainer_search import TrainerSearch
from agents.trainers.table import trainer_named
from des import InfeasiblePlacementError, Placement, Plan, build_workload

MEGATRON = trainer_named("megatron")
JOB = job()
LARGE = build_workload("llama2_70b", num_microbatches=32, gradient_precision="fp32")
NETWORKS = [sites(site("A", gpus), site("B", 8)) for gpus in (8, 16, 8)]
SKETCHES = [Plan(placement=Placement.parse(text)) for text in ("0*16,1*16", "0*24,1*8", "0*32")]


class Memory:
    """Remembers what was found, and counts how often it was looked for."""

    def __init__(self) -> None:
        self.found: dict[Hashable, object] = {}

    def __call__(self, key: Hashable, find: Callable[[], object]) -> object:
        if key not in self.found:
            self.found[key] = find()
        return self.found[key]


def found_by(search: TrainerSearch) -> list[object]:
    """The quickest plan of each network and all bound sketches."""
    plans: list[object] = []
    for network in NETWORKS:
        binder = search.binder(network, JOB)
        plans += [search.quickest(network, JOB), *(search.bind(binder, one) for one in SKETCHES)]
    return plans


def found_alone() -> list[object]:
    """The same without anything in common."""
    plans: list[object] = []
    for network in NETWORKS:
        plans.append(quickest_bound(network, JOB, MEGATRON))
        for sketch in SKETCHES:
            binder = PlanBinder(
                topology=network, workload=JOB, trainer=MEGATRON, schedules=MEGATRON.schedules
            )
            plans.append(binder.bind(sketch))
    return plans


@pytest.mark.parametrize("most_parts", [0, 50, 20_000])
def test_plans_are_those_of_single_searches_however_much_is_kept(most_parts, monkeypatch):
    monkeypatch.setattr(trainer_search, "_MOST_PARTS", most_parts)

    assert found_by(TrainerSearch(trainer=MEGATRON)) == found_alone()


def test_a_study_looks_for_a_plan_once_a_network():
    memory = Memory()
    search = TrainerSearch(trainer=MEGATRON, once=memory)
    first = found_by(search)

    assert first == found_alone()
    assert len(memory.found) == len(NETWORKS[:2]) * (1 + len(SKETCHES))
    assert all(ours is theirs for ours, theirs in zip(found_by(search), first, strict=True))


def test_a_job_that_fits_nowhere_is_refused_each_time():
    search = TrainerSearch(trainer=MEGATRON)
    for _ in range(2):
        with pytest.raises(InfeasiblePlacementError):
            search.quickest(sites(site("A", 8)), LARGE)
