"""Layers of single stages: what moves within a site, and the times of the counts that come out."""

from dataclasses import replace

import pytest
from hypothesis import given
from search_candidates import candidates, fits

from agents.search.kernels.pipeline_times import MISFIT
from des.compiled.simulate import makespan_compiled_s
from des.program.lowering import lower


@pytest.mark.parametrize("is_whole", [True, False])
@given(case=candidates(schedules=("1f1b", "interleaved_1f1b", "zb_h1")))
def test_moved_layers_take_no_longer_and_the_time_is_the_simulator_s(case, is_whole):
    workspace, candidate = case
    start_s = workspace.time_s(candidate.setting, candidate.chains[0], candidate.splits[0])
    if start_s >= MISFIT:
        return
    found = workspace.levelled(replace(candidate, estimate_s=start_s), is_whole=is_whole)

    assert found.estimate_s <= start_s
    assert [devices for devices, _ in found.splits[0]] == [
        devices for devices, _ in candidate.splits[0]
    ]
    assert sum(found.stage_layers) == workspace.job.layer_count
    assert fits(workspace, found)
    workload, plan = found.setting.workload(workspace.job), found.plan(workspace.topology)
    exact_s = makespan_compiled_s(workspace.topology, lower(workspace.topology, workload, plan))
    assert found.estimate_s == pytest.approx(exact_s, rel=1e-12)
    layers = tuple(stage.num_layers for stage in plan.stages)
    assert layers == found.stage_layers
