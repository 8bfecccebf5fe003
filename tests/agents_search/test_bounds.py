"""The bound of all plans: below every plan, and reached where nothing waits."""

from dataclasses import replace

import pytest
from bound_cases import site, sites
from examples import examples
from hypothesis import assume, given, settings
from search_candidates import candidates, fits

from agents.decision.training_job import TrainingJob
from agents.search.bound_search import search_bound
from agents.search.bounds import any_schedule_s, work_bound_s
from agents.search.candidates import Candidate
from agents.search.search import PlanRequest, bound_settings
from agents.search.setting_table import SettingTable
from agents.search.settings import Degrees
from agents.search.workspace import Workspace
from agents.trainers.table import trainer_named
from des import NO_CORRECTIONS, simulate


@settings(max_examples=examples(60))
@given(drawn=candidates())
def test_no_plan_of_a_setting_is_below_its_bound(drawn):
    workspace, candidate = drawn
    assume(fits(workspace, candidate))
    workload = candidate.setting.workload(workspace.job)
    bounds_s = [
        work_bound_s(workspace, [candidate.setting], is_common=is_common)
        for is_common in (True, False)
    ]

    result = simulate(workspace.topology, workload, candidate.plan(workspace.topology))

    assert 0.0 < bounds_s[1] <= bounds_s[0] <= result.makespan_s


@settings(max_examples=examples(30))
@given(drawn=candidates(schedules=("1f1b",)))
def test_no_plan_is_below_the_bound_of_all_settings_of_a_trainer(drawn):
    """Whatever the setting of the plan, as long as it is one of those."""
    workspace, candidate = drawn
    megatron = trainer_named("megatron")
    request = PlanRequest(topology=workspace.topology, job=workspace.job, trainer=megatron)
    assume(fits(workspace, candidate))
    own = list(bound_settings(request, fits=False))
    degrees = replace(candidate.setting.degrees, sharding="none")
    assert any(replace(one.degrees, sharding="none") == degrees for one in own)
    workload = candidate.setting.workload(workspace.job)

    result = simulate(workspace.topology, workload, candidate.plan(workspace.topology))

    assert work_bound_s(workspace, own, is_common=True) <= result.makespan_s


@pytest.mark.parametrize("is_common", [True, False])
def test_one_gpu_without_links_reaches_the_bound(is_common):
    """A GPU that does all the work has nothing to wait for."""
    only = replace(site("A", 1, None), gpu_memory_bytes=160e9)
    job = TrainingJob(model="llama2_7b", num_sequences=4)
    request = PlanRequest(topology=sites(only), job=job, trainer=trainer_named("megatron"))
    workspace = Workspace(topology=request.topology, job=job, corrections=NO_CORRECTIONS)

    bound_s = work_bound_s(workspace, list(bound_settings(request)), is_common=is_common)

    assert search_bound(request).best.figures.step_s == pytest.approx(bound_s)


def test_twice_the_sites_halve_the_bound():
    job = TrainingJob(model="llama2_7b", num_sequences=16)
    found = []
    for names in ("AB", "ABCD"):
        topology = sites(*(site(name) for name in names))
        request = PlanRequest(topology=topology, job=job, trainer=trainer_named("megatron"))
        workspace = Workspace(topology=topology, job=job, corrections=NO_CORRECTIONS)
        found.append(work_bound_s(workspace, list(bound_settings(request)), is_common=True))

    assert found[0] == pytest.approx(2.0 * found[1])


@settings(max_examples=examples(60))
@given(drawn=candidates())
def test_no_plan_of_one_site_is_below_the_bound_of_single_sites(drawn):
    workspace, candidate = drawn
    assume(len(candidate.chains[0]) == 1 and fits(workspace, candidate))
    table = SettingTable(settings=(candidate.setting,))
    workload = candidate.setting.workload(workspace.job)

    result = simulate(workspace.topology, workload, candidate.plan(workspace.topology))

    assert 0.0 < workspace.foreseen(table, table.families).alone_s <= result.makespan_s


@settings(max_examples=examples(60))
@given(drawn=candidates(schedules=("gpipe", "1f1b", "zb_h2", "deep_1f1b", "greedy", "zb_auto")))
def test_no_schedule_of_a_candidate_is_below_its_bound(drawn):
    workspace, candidate = drawn
    assume(fits(workspace, candidate))
    workload = candidate.setting.workload(workspace.job)

    result = simulate(workspace.topology, workload, candidate.plan(workspace.topology))

    assert 0.0 < any_schedule_s(workspace, candidate) <= result.makespan_s


def test_two_equal_stages_wait_for_a_message_of_each_kind_and_for_each_other():
    """Two sites with 16 layers each: 4 microbatches of the second, and one of the first, and links.

    A second stage begins behind a forward pass and a message, and ends before those back. It has
    the last layer, which has more to do.
    """
    job = TrainingJob(model="llama2_7b", num_sequences=4)
    world = sites(site("A", 8), site("B", 8))
    workspace = Workspace(topology=world, job=job, corrections=NO_CORRECTIONS)
    setting = replace(
        next(
            bound_settings(PlanRequest(topology=world, job=job, trainer=trainer_named("megatron")))
        ),
        degrees=Degrees(tensor=8),
        schedule="1f1b",
        num_chunks=1,
    )
    halves = ((1, 16), (1, 16))
    own = Candidate(setting=setting, chains=((0, 1),), splits=(halves,), estimate_s=1.0)
    forward_s, whole_s, input_s, _ = workspace.figures(setting).passes_s[0]
    way_s = 2.0 * workspace.figures(setting).outer_s[0, 1].sum()

    first_s = forward_s[16] + min(whole_s[16], input_s[16])
    last_s = forward_s[32] - forward_s[16] + input_s[32] - input_s[16]
    assert any_schedule_s(workspace, own) == pytest.approx(first_s + 4 * last_s + way_s)
