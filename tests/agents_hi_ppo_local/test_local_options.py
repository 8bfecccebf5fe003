"""Options that fit, judged by the memory of des; jobs; bad cases."""

from dataclasses import replace

import numpy as np
import pytest

from agents.decision.training_job import TrainingJob
from agents.hi_ppo.local.case import LocalCase
from agents.hi_ppo.local.draws import draw_case
from agents.hi_ppo.local.options import options_of, rows_of
from des import (
    Domain,
    InfeasiblePlacementError,
    Parallelism,
    Placement,
    Plan,
    Topology,
    build_workload,
    domain_memory,
)
from des.devices.servers import server
from des.world.domain_load import DomainLoad


def domain_of_gpus(**changes: object) -> Domain:
    figures = {
        "name": "here",
        "num_gpus": 8,
        "gpu_peak_flops_per_s": 300e12,
        "gpu_memory_bytes": 80e9,
        "gpu_memory_bandwidth_bytes_per_s": 2e12,
        "attainable_fraction": 0.5,
        "intra_bandwidth_bytes_per_s": 240e9,
        "intra_latency_s": 3.4e-6,
    }
    return Domain(**(figures | changes))


def case_of(**changes: object) -> LocalCase:
    figures = {
        "domain": domain_of_gpus(),
        "gpus": server("nvswitch"),
        "job": TrainingJob(model="llama2_70b", num_sequences=32),
        "first_layer": 20,
        "num_layers": 20,
        "stages_before": 1,
        "stages_behind": 2,
    }
    return LocalCase(**(figures | changes))


def memory_in_a_chain(case: LocalCase, row: int) -> float:
    """Share of the room that des reckons for an option, other domains being single devices."""
    option = rows_of(len(case.gpus.free)).options[row]
    num_domains = case.stages_before + 1 + case.stages_behind
    others = [replace(case.domain, name=f"other{index}") for index in range(num_domains - 1)]
    others.insert(case.stages_before, case.domain)
    left = case.job.layer_count - case.first_layer - case.num_layers
    before = [case.first_layer - case.stages_before + 1, *[1] * (case.stages_before - 1)]
    behind = [left - case.stages_behind + 1, *[1] * (case.stages_behind - 1)]
    counts = [*before[: case.stages_before], case.num_layers, *behind[: case.stages_behind]]
    parallelism = [Parallelism(tensor=8)] * num_domains
    parallelism[case.stages_before] = option.parallelism
    plan = Plan(
        placement=Placement.contiguous(range(num_domains), counts),
        schedule=case.schedule,
        parallelism=tuple(parallelism),
    )
    workload = case.job.workload(option.microbatch_size, option.recomputation)
    memory = domain_memory(Topology.of(others, []), workload, plan)[case.stages_before]
    return memory.required_bytes / memory.capacity_bytes


@pytest.mark.parametrize("schedule", ["1f1b", "1f1b_2x", "gpipe"])
@pytest.mark.parametrize("occupancy", [0.0, 0.3])
def test_exactly_the_options_that_des_finds_room_for_are_kept(schedule, occupancy):
    """Every one of the 158 options, under the load of other jobs."""
    case = case_of(schedule=schedule, load=DomainLoad(memory_occupancy=occupancy))
    options = options_of(case)
    fractions = dict(zip(options.rows.options, options.memory_fraction, strict=True))

    for row, option in enumerate(rows_of(8).options):
        share = memory_in_a_chain(case, row) / (1.0 - occupancy)
        assert (option in fractions) == (share <= 1.0)
        if option in fractions:
            assert fractions[option] == pytest.approx(share, rel=1e-12)
    assert 0 < len(options) < len(rows_of(8).options)


def test_a_replica_works_on_whole_sequences():
    for option in rows_of(8).options:
        assert option.microbatch_size % option.parallelism.data == 0
        assert option.parallelism.num_gpus <= 8


def test_sizes_that_do_not_divide_the_batch_are_left_out():
    options = options_of(case_of(job=TrainingJob(model="llama2_70b", num_sequences=6)))

    assert set(options.rows.microbatch_size) == {1, 2}
    assert set(options.num_microbatches) == {6, 3}


def test_taken_gpus_are_left_out():
    gpus = replace(server("nvswitch"), free=(1, 4, 6))
    options = options_of(case_of(gpus=gpus, num_layers=5))

    used = options.rows.tensor * options.rows.data * options.rows.pipeline
    assert used.max() == 3


def test_few_layers_make_few_devices():
    options = options_of(case_of(num_layers=2))

    assert options.rows.pipeline.max() == 2
    assert (options.num_layers.sum(axis=1) == 2).all()


def test_more_layers_than_memory_are_refused_with_what_is_missing():
    """16 bytes of 69e9 parameters are 138 GB a GPU; inputs of 80 layers, 3 times, 2 GB more."""
    case = case_of(first_layer=0, num_layers=80)

    with pytest.raises(InfeasiblePlacementError, match=r"80\.0 GB, got 140\.0 GB, 60\.0 GB"):
        options_of(case)


def test_a_job_is_read_off_a_workload():
    workload = build_workload("llama2_7b", num_microbatches=16, microbatch_size=2)
    job = TrainingJob.of(workload, microbatch_size=2)

    assert job.num_sequences == 32
    assert job.workload(2, "flash") == workload
    assert job.workload(4, "full").tokens_per_iteration == workload.tokens_per_iteration
    with pytest.raises(ValueError, match="must be one of build_workload with microbatch_size 2"):
        TrainingJob.of(replace(workload, message_bytes=1.0), microbatch_size=2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"domain": domain_of_gpus(num_gpus=4)}, "gpus must be its 4 GPUs, got 8"),
        ({"first_layer": -1}, "first_layer must be a whole number of at least 0, got -1"),
        ({"num_layers": 0}, "num_layers must be a whole number from 1"),
        ({"first_layer": 70}, "layers must end by the model's 80, got 20 from 70 on"),
        ({"stages_behind": 1.5}, "stages_behind must be a whole number"),
        ({"schedule": "zb_h1"}, "schedule must be gpipe or 1f1b, .*; got 'zb_h1'"),
    ],
)
def test_bad_cases_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        case_of(**changes)


def test_a_size_that_does_not_divide_the_sequences_is_refused():
    with pytest.raises(ValueError, match="microbatch_size must divide the 6 sequences"):
        TrainingJob(model="llama2_7b", num_sequences=6).workload(4, "flash")


def test_equal_generators_draw_equal_cases_that_have_options():
    first, again = (
        [draw_case(np.random.default_rng([seed, 9])) for seed in range(10)] for _ in range(2)
    )

    assert first == again
    assert all(len(options_of(case)) > 0 for case in first)
