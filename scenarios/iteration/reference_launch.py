"""Launch files of the reference runtime: what it runs, made of a plan and read back as one."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby, takewhile

from agents.decision.bound_plan import BoundPlan
from agents.trainers.plan_checks import domains_in_use
from des import DiLoCo, GradientExchange, Placement, StreamingDiLoCo
from des.plan.buckets import buckets_behind, buckets_of
from des.plan.learners import require_one_clock
from des.plan.synchronisation import Synchronisation
from des.program.actions import REDUCE
from des.program.lowering import lower
from des.program.program import ExchangeMember, Program
from des.world.runtime import Receives, RuntimeConnections, runtime_named
from scenarios.iteration.launch_folder import (
    HOSTS,
    LaunchedPlan,
    file_of,
    said_plan,
    sites_of_ranks,
)
from scenarios.iteration.reference_operations import operations_of, operations_text
from scenarios.iteration.runtime_job import (
    FORMAT,
    OPERATIONS,
    RUNTIME,
    RuntimeBucket,
    RuntimeJob,
    RuntimeStage,
    rank_of_stages,
    read_runtime_job,
)

_RUNTIME_OF: Mapping[Receives, str] = {"first": "reference", "stock": "torch_stock"}
"""Runtimes of the simulator that post receives there."""


def as_run(bound: BoundPlan) -> BoundPlan:
    """Return a plan as the reference runtime runs it.

    Replicas exchange in rings, after the last pass over a bucket or, every few steps, after the
    step; nothing is sharded over them. Fragments are on their way during one later step at least.

    Raises
    ------
    ValueError
        If learners do not wait for all others, or a fragment is due while it is on its way.
    """
    require_one_clock("reference runtime", bound.plan)
    mode, exchange = bound.plan.synchronisation, bound.plan.exchange
    own = _exchange_mode(mode, mode.steps_between, mode.bits_per_value)
    plan = replace(
        bound.plan,
        sends="overlapped",
        exchange=GradientExchange(bucket_bytes=exchange.bucket_bytes),
        synchronisation=own if bound.plan.replicas else mode,
    )
    return replace(bound, plan=plan)


def _exchange_mode(
    said: Synchronisation, steps_between: int, bits: float
) -> DiLoCo | StreamingDiLoCo:
    if isinstance(said, StreamingDiLoCo):
        later = max(1, said.overlap_steps)
        if later >= steps_between:
            raise ValueError(
                f"reference runtime: steps_between must be above overlap_steps, {later}, so that a "
                f"fragment is back when it is due again; got {steps_between}"
            )
        return replace(said, steps_between=steps_between, bits_per_value=bits, overlap_steps=later)
    return DiLoCo(
        steps_between=steps_between,
        bits_per_value=bits,
        behind_backward=steps_between == 1,
        outer_state=said.outer_state,
    )


def runtime_program(
    bound: BoundPlan, receives: Receives, connections: RuntimeConnections = "split"
) -> Program:
    """Lower the step of a plan that exchanges, as the runtime runs it."""
    runtime = replace(runtime_named(_RUNTIME_OF[receives]), connections=connections)
    transport = replace(bound.topology.transport, runtime=runtime)
    step = bound.plan.synchronisation.steps_between - 1
    world = replace(bound.topology, transport=transport)
    return lower(world, bound.workload, bound.plan, bound.corrections, step=step)


def rank_devices(bound: BoundPlan) -> list[tuple[int, int]]:
    """Domain and device of each rank: sites in the order in which replicas reach them."""
    order = domains_in_use(bound.plan)
    used = {(one.domain, one.device) for own in bound.plan.stages_of_replicas for one in own}
    return sorted(used, key=lambda device: (order.index(device[0]), device[1]))


def runtime_files(bound: BoundPlan) -> dict[str, str]:
    """Return the files of a plan that is as the runtime runs it.

    Raises
    ------
    ValueError
        If devices serve several pipelines, or workers wait for what they send.
    """
    programs = {one: runtime_program(bound, one) for one in OPERATIONS}
    program = programs["first"]
    names = bound.topology.domains
    worker_of = {
        (program.stages[own.stages[0]].domain, program.stages[own.stages[0]].domain_device): number
        for number, own in enumerate(program.workers)
    }
    if len(worker_of) != len(program.workers):
        raise ValueError(
            "plan: a device must serve one pipeline in the reference runtime, got several"
        )
    workers = [worker_of[names[domain].name, device] for domain, device in rank_devices(bound)]
    found = {
        RUNTIME: _job(bound, program, workers).model_dump_json(indent=1, exclude_defaults=True)
        + "\n"
    }
    for receives, name in OPERATIONS.items():
        found[name] = operations_text(operations_of(programs[receives], workers))
    return found


def _job(bound: BoundPlan, program: Program, workers: list[int]) -> RuntimeJob:
    plan, replicas = bound.plan, bound.plan.stages_of_replicas
    replica_of = [number for number, own in enumerate(replicas) for _ in own]
    first_stages = [replica_of.index(number) for number in range(len(replicas))]
    return RuntimeJob(
        format=FORMAT,
        stages_of_rank=[list(program.workers[one].stages) for one in workers],
        stages=[
            RuntimeStage(
                replica=replica,
                first_layer=stage.first_layer,
                num_layers=stage.num_layers,
                durations_s=list(stage.durations_s),
            )
            for stage, replica in zip(program.stages, replica_of, strict=True)
        ],
        shares=[program.stages[stage].num_gradients for stage in first_stages],
        message_bytes=bound.workload.message_bytes / plan.activation_compression,
        steps_between=plan.synchronisation.steps_between if plan.replicas else 1,
        bits_per_value=plan.synchronisation.bits_per_value,
        overlap_steps=plan.synchronisation.overlap_steps if plan.replicas else 0,
        buckets=[*_buckets(bound, program), *_fragments(bound)],
        update_s=program.update_s,
    )


def _buckets(bound: BoundPlan, program: Program) -> Iterator[RuntimeBucket]:
    members = iter(program.members)
    step = bound.plan.synchronisation.steps_between - 1
    for bucket in buckets_of(bound.workload, bound.plan, step):
        own = [next(members) for _ in bucket.stages]
        lists = [program.operations[one.worker.operations].rows[:, 0].tolist() for one in own]
        yield RuntimeBucket(
            first_layer=bucket.first_layer,
            num_layers=bucket.num_layers,
            num_bytes=bucket.num_bytes if bucket.between_domains else 0.0,
            stages=list(bucket.stages),
            left_fractions=[one.left_fraction for one in own],
            inner_sums_s=list(map(_inner_sums_s, own, lists)),
            after_step=bucket.after_step,
        )


def _fragments(bound: BoundPlan) -> Iterator[RuntimeBucket]:
    """Buckets of fragments, which start after the step in which they are due."""
    for step in range(bound.plan.synchronisation.steps_between):
        for bucket in buckets_behind(bound.workload, bound.plan, step):
            count = len(bucket.stages)
            yield RuntimeBucket(
                first_layer=bucket.first_layer,
                num_layers=bucket.num_layers,
                num_bytes=bucket.num_bytes,
                stages=list(bucket.stages),
                left_fractions=[0.0] * count,
                inner_sums_s=[[0.0, 0.0]] * count,
                after_step=True,
                due_step=step + 1,
            )


def _inner_sums_s(member: ExchangeMember, actions: list[int]) -> list[float]:
    """Times of the sums inside a device before its first message, and after it. [s]"""
    num_before = sum(1 for _ in takewhile(REDUCE.__eq__, actions))
    num_after = actions.count(REDUCE) - num_before
    return [num_before * member.reduce_s, num_after * member.reduce_s]


def read_reference_launch(files: Mapping[str, str]) -> LaunchedPlan:
    """Read the plan of the files of the reference runtime on the hosts that are given.

    Raises
    ------
    ValueError
        If files are wrong, or others than those of the plan that they say.
    """
    said, job = said_plan(files), read_runtime_job(file_of(files, RUNTIME))
    sites = sites_of_ranks(file_of(files, HOSTS), said.topology)
    if len(sites) != len(job.stages_of_rank):
        raise ValueError(
            f"{HOSTS}: must have the {len(job.stages_of_rank)} ranks of {RUNTIME}, got {len(sites)}"
        )
    site_of = [sites[rank] for rank in rank_of_stages(job)]
    placements = [
        Placement.of_stages([(site_of[number], stage.num_layers) for number, stage in own])
        for _, own in groupby(enumerate(job.stages), lambda one: one[1].replica)
    ]
    plan = replace(
        said.plan,
        placement=placements[0],
        replicas=tuple(placements[1:]),
        shares=tuple(job.shares) if len(job.shares) > 1 else (),
        synchronisation=_exchange_mode(
            said.plan.synchronisation, job.steps_between, job.bits_per_value
        ),
    )
    found = as_run(replace(said, plan=plan))
    _check_files(files, runtime_files(found))
    return LaunchedPlan(said=said, workload=said.workload, plan=found.plan)


def _check_files(files: Mapping[str, str], needed: Mapping[str, str]) -> None:
    """Refuse files other than those of the plan that they say."""
    for name, text in needed.items():
        lines, given = text.splitlines(), file_of(files, name).splitlines()
        for number, line in enumerate(lines):
            if given[number : number + 1] != [line]:
                raise ValueError(
                    f"{name}: row {number} must be that of the plan, which is simulated; "
                    f"another one came: {''.join(given[number : number + 1])[:80]!r}"
                )
        if len(given) != len(lines):
            raise ValueError(f"{name}: must have {len(lines)} rows, got {len(given)}")
