"""Programs: what plans become, and that engines run them wherever they come from."""

import zlib
from dataclasses import replace
from functools import partial
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sending import transports
from sharing import equal_world, gpus, model, replicas
from strategies import corrections, free_world, plan, topologies, unit_workload, workloads
from ties import any_plans

from des import (
    NO_CORRECTIONS,
    DeadlockError,
    Link,
    Parallelism,
    Placement,
    Plan,
    Topology,
    Workload,
    simulate,
)
from des.compiled.pack import pack
from des.compiled.results import iteration_result
from des.compiled.simulate import run_to_end
from des.engine.iteration import run_alone
from des.program.actions import COMPUTE, NONE, REDUCE, SEND, WAIT, WAIT_SENT
from des.program.lowering import lower
from des.program.passes import blocking_sends
from des.program.program import OperationList, Program

MOST_BYTES = 1_000_000
"""Of a program of 64 sites, 10,000 GPUs and 64 microbatches."""


def listed(program: Program, worker: int) -> list[list[int]]:
    """Operations of a worker."""
    return program.operations[program.workers[worker].operations].rows.tolist()


def test_two_stages_by_hand():
    """Ports of a stage's flows: activation in, gradient in, activation out, gradient out."""
    program = lower(free_world(2), unit_workload([(1, 2)] * 2, num_microbatches=1), plan(0, 1))

    assert listed(program, 0) == [[COMPUTE, 0, 0], [SEND, 2, 0], [WAIT, 1, 0], [COMPUTE, 1, 0]]
    assert listed(program, 1) == [[WAIT, 0, 0], [COMPUTE, 0, 0], [COMPUTE, 1, 0], [SEND, 3, 0]]
    assert [worker.flows for worker in program.workers] == [(NONE, 1, 2, NONE), (2, NONE, NONE, 1)]
    assert [(flow.stage, flow.kind, flow.num_messages) for flow in program.flows] == [
        (NONE, "", 1),
        (1, "B", 1),
        (0, "F", 1),
        (NONE, "", 1),
    ]
    assert [stage.durations_s for stage in program.stages] == [(1.0, 2.0, 1.0, 1.0)] * 2


def test_a_ring_of_two_by_hand():
    """Each member reduces inside its device, passes two parts on, and gathers inside."""
    topology = equal_world(2, num_gpus=2)
    chosen = replicas((0,), (1,), parallelism=(Parallelism(data=2),) * 2)
    program = lower(topology, model(1, 2, 8.0), chosen)

    (operations,) = {member.worker.operations for member in program.members}
    assert program.operations[operations].rows.tolist() == [
        [REDUCE, 0, 0],
        *([SEND, 0, 0], [WAIT, 1, 0]),
        *([SEND, 0, 1], [WAIT, 1, 1]),
        [REDUCE, 0, 0],
    ]
    assert [member.group for member in program.members] == [0, 1]


def test_workers_that_behave_alike_share_a_list():
    """All stages that two microbatches fill do the same, but for those at the ends."""
    workload = unit_workload([(1, 2)] * 8, num_microbatches=2)
    program = lower(free_world(8), workload, plan(*range(8)))

    assert [worker.operations for worker in program.workers] == [0, 1, 1, 1, 1, 1, 1, 2]


def test_blocking_sends_wait_behind_each_send():
    program = lower(free_world(2), unit_workload([(1, 2)] * 2, num_microbatches=1), plan(0, 1))

    assert listed(blocking_sends(program), 0)[1:3] == [[SEND, 2, 0], [WAIT_SENT, 2, 0]]
    assert listed(blocking_sends(program), 1)[3:] == [[SEND, 3, 0], [WAIT_SENT, 3, 0]]
    assert len(listed(program, 0)) == 4


def test_only_workers_of_pipelines_block():
    program = lower(equal_world(2), model(1, 2, 8.0), replicas((0,), (1,)))

    assert blocking_sends(program).members == program.members


@given(data=st.data(), topology=topologies(min_domains=2), workload=workloads())
def test_sends_of_a_plan_that_block_are_the_pass_over_the_program(data, topology, workload):
    chosen = data.draw(any_plans(topology, workload).filter(partial(fits, topology, workload)))
    plain = lower(topology, workload, replace(chosen, sends="overlapped"))
    held = lower(topology, workload, replace(chosen, sends="blocking"))

    assert blocking_sends(plain).to_bytes() == held.to_bytes()


def fits(topology: Topology, workload: Workload, chosen: Plan) -> bool:
    """Whether the schedule of a plan can be had."""
    try:
        lower(topology, workload, chosen)
    except ValueError:
        return False
    return True


@given(
    data=st.data(),
    topology=topologies(min_domains=2),
    workload=workloads(),
    corrections=corrections(),
    step=st.integers(0, 3),
)
def test_a_program_read_back_from_bytes_runs_as_its_plan(
    data, topology, workload, corrections, step
):
    world = replace(topology, transport=data.draw(transports()))
    chosen = data.draw(any_plans(world, workload).filter(partial(fits, world, workload)))
    content = lower(world, workload, chosen, corrections, step=step).to_bytes()
    program = Program.from_bytes(content)

    assert program.to_bytes() == content
    expected = simulate(world, workload, chosen, corrections, step=step)
    assert run_alone(world, program, corrections).result() == expected
    arrays = pack(world, program, corrections)
    assert iteration_result(world, program, arrays, run_to_end(world, arrays)) == expected


@pytest.mark.parametrize(
    "content", [b"", b"{}", zlib.compress(b"[]"), zlib.compress(b'{"format":0}')]
)
def test_bytes_of_something_else_are_refused(content):
    with pytest.raises(ValueError, match="program: bytes must be of eastwest program 2, got"):
        Program.from_bytes(content)


def test_a_program_with_a_part_missing_is_refused():
    program = lower(free_world(1), unit_workload([(1, 2)], num_microbatches=1), plan(0))

    with pytest.raises(ValueError, match="program: operations of a worker must be below 0"):
        replace(program, operations=())


@pytest.mark.parametrize(("num_replicas", "schedule"), [(1, "1f1b"), (8, "1f1b"), (8, "zb_h1_2x")])
def test_programs_grow_with_what_differs(num_replicas, schedule):
    """64 sites of 156 GPUs, in pipelines of 13 devices a site, and 64 microbatches."""
    names = [f"site {number}" for number in range(64)]
    topology = Topology.of(
        [gpus(name, 156, (1e11, 1e-6)) for name in names],
        [
            Link(source=source, target=target, bandwidth_bytes_per_s=1e9, latency_s=0.01)
            for source, target in permutations(names, 2)
        ],
    )
    sites = 64 // num_replicas
    layers = [13] * sites
    first, *others = (
        Placement.contiguous(range(sites * place, sites * (place + 1)), layers)
        for place in range(num_replicas)
    )
    chosen = Plan(
        placement=first,
        replicas=tuple(others),
        schedule=schedule,
        parallelism=(Parallelism(tensor=4, data=3, pipeline=13),) * 64,
    )
    content = lower(topology, model(sum(layers), 64, 1e9), chosen).to_bytes()

    assert len(content) <= MOST_BYTES


def test_a_world_of_other_links_is_refused():
    workload = unit_workload([(1, 2)] * 2, num_microbatches=1)
    program = lower(free_world(2), workload, plan(0, 1))

    for run in (pack, partial(run_alone, corrections=NO_CORRECTIONS)):
        with pytest.raises(ValueError, match="must have the 2 links that it was lowered for"):
            run(free_world(3), program)


@pytest.mark.parametrize(
    ("operation", "message"),
    [((WAIT, 4, 0), "ports must be those of the worker"), ((WAIT, 1, 1), "on messages of flows")],
)
def test_operations_on_what_there_is_not_are_not_packed(operation, message):
    workload = unit_workload([(1, 2)] * 2, num_microbatches=1)
    program = lower(free_world(2), workload, plan(0, 1))
    rows = np.array([operation, *program.operations[0].rows.tolist()], np.int32)
    changed = replace(program, operations=(OperationList(rows), *program.operations[1:]))

    with pytest.raises(ValueError, match=message):
        pack(free_world(2), changed)


def test_operations_in_an_order_that_arrays_cannot_hold_are_refused():
    """A send that is put off until behind the next wait."""
    topology, workload = free_world(2), unit_workload([(1, 2)] * 2, num_microbatches=1)
    program = lower(topology, workload, plan(0, 1))
    rows = program.operations[0].rows[[0, 2, 1, 3]]
    moved = replace(program, operations=(OperationList(rows), *program.operations[1:]))

    with pytest.raises(ValueError, match="to be packed; got others, such as of worker 0"):
        pack(topology, moved)
    with pytest.raises(DeadlockError, match="B0 of stage 0, F0 of stage 1"):
        run_alone(topology, moved, NO_CORRECTIONS).result()
