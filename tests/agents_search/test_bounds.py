"""The bound of all plans: below every plan, and reached where nothing waits."""

from dataclasses import replace

import pytest
from bound_cases import site, sites
from examples import examples
from hypothesis import assume, given, settings
from search_candidates import candidates, fits

from agents.decision.training_job import TrainingJob
from agents.search.bound_search import search_bound
from agents.search.bounds import work_bound_s
from agents.search.desk import SearchDesk
from agents.search.search import PlanRequest, bound_settings
from agents.search.setting_table import SettingTable
from agents.trainers.table import trainer_named
from des import NO_CORRECTIONS, simulate


@settings(max_examples=examples(60))
@given(drawn=candidates())
def test_no_plan_of_a_setting_is_below_its_bound(drawn):
    desk, candidate = drawn
    assume(fits(desk, candidate))
    workload = candidate.setting.workload(desk.job)
    bounds_s = [
        work_bound_s(desk, [candidate.setting], is_common=is_common) for is_common in (True, False)
    ]

    result = simulate(desk.topology, workload, candidate.plan(desk.topology))

    assert 0.0 < bounds_s[1] <= bounds_s[0] <= result.makespan_s


@settings(max_examples=examples(30))
@given(drawn=candidates(schedules=("1f1b",)))
def test_no_plan_is_below_the_bound_of_all_settings_of_a_trainer(drawn):
    """Whatever the setting of the plan, as long as it is one of those."""
    desk, candidate = drawn
    megatron = trainer_named("megatron")
    request = PlanRequest(topology=desk.topology, job=desk.job, trainer=megatron)
    assume(fits(desk, candidate))
    own = list(bound_settings(request, fits=False))
    degrees = replace(candidate.setting.degrees, sharding="none")
    assert any(replace(one.degrees, sharding="none") == degrees for one in own)
    workload = candidate.setting.workload(desk.job)

    result = simulate(desk.topology, workload, candidate.plan(desk.topology))

    assert work_bound_s(desk, own, is_common=True) <= result.makespan_s


@pytest.mark.parametrize("is_common", [True, False])
def test_one_gpu_without_links_reaches_the_bound(is_common):
    """A GPU that does all the work has nothing to wait for."""
    only = replace(site("A", 1, None), gpu_memory_bytes=160e9)
    job = TrainingJob(model="llama2_7b", num_sequences=4)
    request = PlanRequest(topology=sites(only), job=job, trainer=trainer_named("megatron"))
    desk = SearchDesk(topology=request.topology, job=job, corrections=NO_CORRECTIONS)

    bound_s = work_bound_s(desk, list(bound_settings(request)), is_common=is_common)

    assert search_bound(request).best.figures.step_s == pytest.approx(bound_s)


def test_twice_the_sites_halve_the_bound():
    job = TrainingJob(model="llama2_7b", num_sequences=16)
    found = []
    for names in ("AB", "ABCD"):
        topology = sites(*(site(name) for name in names))
        request = PlanRequest(topology=topology, job=job, trainer=trainer_named("megatron"))
        desk = SearchDesk(topology=topology, job=job, corrections=NO_CORRECTIONS)
        found.append(work_bound_s(desk, list(bound_settings(request)), is_common=True))

    assert found[0] == pytest.approx(2.0 * found[1])


@settings(max_examples=examples(60))
@given(drawn=candidates())
def test_no_plan_of_one_site_is_below_the_bound_of_single_sites(drawn):
    desk, candidate = drawn
    assume(len(candidate.chains[0]) == 1 and fits(desk, candidate))
    table = SettingTable(settings=(candidate.setting,))
    workload = candidate.setting.workload(desk.job)

    result = simulate(desk.topology, workload, candidate.plan(desk.topology))

    assert 0.0 < desk.foreseen(table, table.families).alone_s <= result.makespan_s
