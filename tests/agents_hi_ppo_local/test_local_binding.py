"""Times of bindings against des, best bindings against brute force, bounds and invariances."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from gpu_numbers import renumbered
from local_reference import seconds_per_sequence
from local_servers import assert_same_times
from test_local_options import case_of

from agents.decision.training_job import TrainingJob
from agents.devices.best_binding import best_binding
from agents.devices.binding_bounds import least_iteration_s
from agents.devices.binding_search import quick_binding
from agents.devices.binding_times import iteration_s, work_at
from agents.hi_ppo.local.bound_plans import (
    each_quickly_bound,
    exhaustive,
    quickly_bound,
    server_gpus_of,
    works_of,
)
from agents.hi_ppo.local.draws import draw_case
from agents.hi_ppo.local.options import LocalOption, options_of
from agents.hi_ppo.local.rules import largest_tensor, largest_tensor_bound, least_estimate
from des import Corrections, Parallelism, Placement, Plan, Topology, simulate
from des.devices.gpus import GpuTopology
from des.devices.servers import draw_server, server

SEEDS = range(6)


def case_on(gpus: GpuTopology, **changes: object):
    """A case on other GPUs than a server of eight."""
    case = case_of()
    domain = replace(case.domain, num_gpus=gpus.num_gpus, gpu_memory_bytes=1e12)
    return replace(case, domain=domain, gpus=gpus, **changes)


def row_of(case, **shape: int) -> int:
    """Row of the option of a shape in microbatches of as many sequences as replicas."""
    wanted = LocalOption(
        parallelism=Parallelism(**shape),
        microbatch_size=shape.get("data", 1),
        recomputation="flash",
    )
    return options_of(case).rows.options.index(wanted)


def test_tensor_groups_go_to_the_fast_pairs():
    """GPUs 0 and 2 have NVLinks, and so have 1 and 3; a pipeline of two devices crosses PCIe."""
    fast, slow = "NV4", "SYS"
    gpus = GpuTopology.of_classes(
        [
            ["X", slow, fast, slow],
            [slow, "X", slow, fast],
            [fast, slow, "X", slow],
            [slow, fast, slow, "X"],
        ]
    )
    case = case_on(gpus)
    row = row_of(case, tensor=2, pipeline=2)

    plan = quickly_bound(case, options_of(case), [row])
    assert [set(plan.binding[:2]), set(plan.binding[2:])] in ([{0, 2}, {1, 3}], [{1, 3}, {0, 2}])


def test_a_device_of_two_replicas_shares_layers_over_the_fast_pairs():
    """Tensor groups send 4 messages a layer and microbatch, replicas one gradient an iteration."""
    names = [["NV4" if one // 2 == other // 2 else "SYS" for one in range(4)] for other in range(4)]
    classes = [
        ["X" if one == other else name for one, name in enumerate(row)]
        for other, row in enumerate(names)
    ]
    gpus = renumbered(GpuTopology.of_classes(classes), [0, 2, 1, 3])
    case = case_on(gpus)

    plan = quickly_bound(case, options_of(case), [row_of(case, tensor=2, data=2)])
    assert {frozenset(plan.binding[:2]), frozenset(plan.binding[2:])} == {
        frozenset({0, 2}),
        frozenset({1, 3}),
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_compiled_times_are_those_of_the_formulas_of_des(seed):
    """Every option of a random case on random GPUs, with corrections."""
    rng = np.random.default_rng(seed)
    corrections = Corrections(
        compute_time_factor=1.3, intra_bandwidth_factor=0.7, intra_latency_factor=2.0
    )
    case = replace(draw_case(rng), corrections=corrections)
    options = options_of(case)
    works, gpus = works_of(case, options), server_gpus_of(case)

    for row, option in enumerate(options.rows.options):
        binding = rng.permutation(case.gpus.free)
        used = tuple(binding[: option.parallelism.num_gpus].tolist())
        found = iteration_s(work_at(works, row), gpus, binding) / case.job.num_sequences
        assert found == pytest.approx(seconds_per_sequence(case, option, used), rel=1e-12)
        assert_same_times(case, option, used)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_binding_is_the_best_of_all(seed):
    """All orders of 5 or 6 free GPUs, for every shape that uses several."""
    rng = np.random.default_rng([seed, 1])
    gpus = draw_server(rng)
    gpus = replace(gpus, free=gpus.free[: 5 + seed % 2])
    case = case_on(gpus, num_layers=7)
    options = options_of(case)
    rows = [
        row
        for row, option in enumerate(options.rows.options)
        if option.recomputation == "flash"
        and option.parallelism.data == option.microbatch_size
        and option.parallelism.sharding == "none"
    ]
    works, gpus = works_of(case, options), server_gpus_of(case)
    for row in rows:
        work = work_at(works, row)
        orders = np.array(list(permutations(case.gpus.free)))
        brute_s = min(iteration_s(work, gpus, order) for order in orders)
        binding = np.empty_like(gpus.free)
        quick_s = quick_binding(work, gpus, binding)
        assert iteration_s(work, gpus, binding) == quick_s
        assert quick_s <= 1.05 * brute_s
        best_s = best_binding(work, gpus, np.inf, binding)
        assert best_s == pytest.approx(brute_s, rel=1e-12)
        used = work.tensor * work.data * work.pipeline
        assert iteration_s(work, gpus, binding[:used]) == pytest.approx(best_s, rel=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_no_plan_is_quicker_than_the_exhaustive_one(seed):
    """Rules, the estimate, and any options on GPUs in any order."""
    rng = np.random.default_rng([seed, 2])
    case = draw_case(rng)
    options = options_of(case)
    best_s = exhaustive(case, options).seconds_per_sequence * (1.0 - 1e-12)

    for rule in (largest_tensor, largest_tensor_bound, least_estimate):
        assert rule(case, options).seconds_per_sequence >= best_s
    for option in options.rows.options:
        binding = tuple(rng.permutation(case.gpus.free)[: option.parallelism.num_gpus].tolist())
        assert seconds_per_sequence(case, option, binding) >= best_s


@pytest.mark.parametrize("seed", range(8))
def test_other_numbers_of_the_gpus_leave_the_best_time_as_it_is(seed):
    rng = np.random.default_rng([seed, 3])
    case = draw_case(rng)
    order = rng.permutation(8).tolist()
    other = replace(case, gpus=renumbered(case.gpus, order))

    here, there = exhaustive(case), exhaustive(other)
    assert there.seconds_per_sequence == pytest.approx(here.seconds_per_sequence, rel=1e-12)
    back = tuple(order[gpu] for gpu in there.binding)
    same = seconds_per_sequence(case, there.option, back)
    assert same == pytest.approx(here.seconds_per_sequence, rel=1e-12)


@pytest.mark.parametrize(
    ("tensor", "data", "pipeline"), [(8, 1, 1), (4, 1, 1), (2, 4, 1), (1, 2, 1), (2, 2, 1)]
)
def test_one_device_takes_as_long_as_des_simulates(tensor, data, pipeline):
    """The whole job in one domain: compute, rings and the sum of the gradients."""
    job = TrainingJob(model="llama2_7b", num_sequences=32)
    case = case_of(job=job, first_layer=0, num_layers=32, stages_before=0, stages_behind=0)
    case = replace(case, domain=replace(case.domain, gpu_memory_bytes=1e12))
    option = options_of(case).rows.options[row_of(case, tensor=tensor, data=data)]
    used = tensor * data * pipeline
    plan = Plan(placement=Placement.contiguous([0], [32]), parallelism=(option.parallelism,))
    workload = job.workload(option.microbatch_size, option.recomputation)
    result = simulate(Topology.of([case.domain], []), workload, plan)

    found = seconds_per_sequence(case, option, tuple(range(used)))
    assert found == pytest.approx(result.makespan_s / 32, rel=1e-9)


def test_equal_devices_in_a_row_take_as_long_as_des_simulates():
    """Four devices of eight layers; embedding, head and hops make 1F1B a little longer."""
    job = TrainingJob(model="llama2_7b", num_sequences=64, num_layers=32)
    case = case_of(job=job, first_layer=0, num_layers=32, stages_before=0, stages_behind=0)
    case = replace(case, domain=replace(case.domain, gpu_memory_bytes=1e12))
    shape = Parallelism(tensor=2, pipeline=4)
    option = LocalOption(parallelism=shape, microbatch_size=1, recomputation="flash")
    plan = Plan(placement=Placement.contiguous([0], [32]), parallelism=(shape,))
    result = simulate(Topology.of([case.domain], []), job.workload(1, "flash"), plan)

    found = seconds_per_sequence(case, option, tuple(range(8)))
    assert found == pytest.approx(result.makespan_s / 64, rel=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_no_binding_is_below_what_the_best_rings_and_pairs_would_take(seed):
    """And a search that only wants what is below that does not begin."""
    case = draw_case(np.random.default_rng([seed, 3]))
    options, gpus = options_of(case), server_gpus_of(case)
    works = works_of(case, options)
    for row in range(len(options)):
        work = work_at(works, row)
        binding, least_s = np.empty_like(gpus.free), least_iteration_s(work, gpus)
        found_s = quick_binding(work, gpus, binding)

        assert least_s * (1.0 - 1e-12) <= found_s == iteration_s(work, gpus, binding)
        assert quick_binding(work, gpus, binding, 0.999 * least_s) == np.inf
        assert quick_binding(work, gpus, binding, 1.001 * found_s) == found_s


def test_bindings_that_do_not_match_are_refused():
    case = case_of(gpus=replace(server("nvswitch"), free=(0, 1, 2, 3, 4, 5)))
    option = LocalOption(
        parallelism=Parallelism(tensor=2), microbatch_size=1, recomputation="flash"
    )

    for binding in ((0,), (0, 6)):
        with pytest.raises(ValueError, match="binding: must name 2 of the free GPUs"):
            seconds_per_sequence(case, option, binding)
    with pytest.raises(ValueError, match="binding: must name each GPU once"):
        seconds_per_sequence(case, option, (1, 1))


@pytest.mark.parametrize("seed", range(3))
def test_groups_of_options_are_bound_as_each_of_them_alone(seed):
    case = draw_case(np.random.default_rng(seed))
    options = options_of(case)
    order = np.random.default_rng(seed).permutation(len(options))
    groups = np.array_split(order[:12], 3)

    together = each_quickly_bound(case, options, works_of(case, options), groups)

    assert together == [quickly_bound(case, options, group) for group in groups]
