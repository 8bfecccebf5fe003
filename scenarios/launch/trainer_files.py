"""Files of a launch that are a trainer's own: Megatron-LM, torchtitan, the reference runtime.

Of torchtitan there is one launch of all replicas, or one of each that DiLoCo joins; of the
reference runtime a rank for each device of the plan.
"""

from collections.abc import Mapping
from itertools import groupby
from math import ceil

from agents.decision.bound_plan import BoundPlan
from agents.trainers.megatron_arguments import MegatronCommand, model_lines, plan_lines
from agents.trainers.plan_checks import domains_in_use, launches_of
from agents.trainers.torchtitan import TORCHTITAN
from agents.trainers.torchtitan_config import (
    EXCHANGED_BITS,
    CheckpointTable,
    OuterTable,
    ParallelismTable,
    QuantizationTable,
    TorchtitanConfig,
    TrainingTable,
    llama_sizes,
    module_names,
    with_ends,
)
from agents.trainers.torchtitan_orders import orders_text
from agents.trainers.trainer import HostOrder
from des.job.transformer import ATTENTION_OF
from des.plan.placement import Stage
from des.schedules import schedule_named
from scenarios.iteration.launch_folder import ARGUMENTS, LaunchHost, architecture_of_job
from scenarios.iteration.reference_launch import as_run, rank_devices, runtime_files
from scenarios.iteration.torchtitan_launch import CONFIG, ORDERS, REPLICA, orders_of_replicas
from scenarios.launch.hosts import SiteHosts, devices_of, rank_hosts

_LEAST_TIMEOUT_MIN = 10


def megatron_files(
    bound: BoundPlan, hosts: Mapping[int, SiteHosts]
) -> tuple[dict[str, str], dict[str, tuple[LaunchHost, ...]]]:
    """Return the arguments, and the hosts of the launch in the order of their ranks.

    Raises
    ------
    ValueError
        If Megatron-LM cannot be told the plan.
    """
    order = _host_order(bound)
    command = _command(bound, order)
    own = architecture_of_job(bound.workload)
    minutes = max(_LEAST_TIMEOUT_MIN, ceil(bound.step_s / 6.0))
    lines = (
        *model_lines(own, bound.workload.num_layers, command.sequence_length),
        *plan_lines(command),
        f"--distributed-timeout-minutes {minutes}",
    )
    ranks = rank_hosts(bound, bound.plan.stages_of_replicas, order, hosts)
    return {ARGUMENTS: "".join(f"{line}\n" for line in lines)}, {"": ranks}


def _host_order(bound: BoundPlan) -> HostOrder:
    """Order of ranks in which each host has its own GPUs in a row."""
    replicas = bound.plan.stages_of_replicas
    is_pipeline = any(len(devices_of(own)[0]) > 1 for own in replicas)
    has_copies = any(bound.plan.parallelism[one].data > 1 for one in domains_in_use(bound.plan))
    return "replica" if len(replicas) > 1 and is_pipeline and not has_copies else "stage"


def _command(bound: BoundPlan, order: HostOrder) -> MegatronCommand:
    plan, shape = bound.plan, bound.workload.shape
    assert shape is not None
    devices, is_wave = devices_of(plan.stages_of_replicas[0])
    if is_wave:
        raise ValueError(
            "trainer megatron: stages must go round the ranks, as --pipeline-model-parallel-layout "
            "lays them; got there and back, which Megatron-LM would lay round without a word"
        )
    own, layers = plan.parallelism[devices[0][0]], plan.stages_of_replicas[0]
    factor = schedule_named(plan.schedule)[1]
    shards = own.sharding == "optimiser" or plan.exchange.sharded
    num_replicas = len(plan.placements)
    return MegatronCommand(
        tensor=own.tensor,
        pipeline=len(devices),
        context=own.context,
        expert=own.expert,
        whole_experts=own.whole_experts,
        micro_batch_size=int(bound.microbatch_size),
        global_batch_size=round(bound.workload.num_microbatches * shape.batch_size),
        sequence_length=shape.sequence,
        num_layers=bound.workload.num_layers,
        stage_layers=tuple(stage.num_layers for stage in layers),
        group_size=None if factor in (None, 1.0) else round((factor or 1.0) * len(devices)),
        replica_order=order == "replica",
        num_gpus=None,
        optimiser_instances=num_replicas if shards and not plan.exchange.sharded else 1,
        shards_optimiser=shards,
        sequence_parallel=own.sequence_parallel and own.tensor > 1,
        overlaps_gradients=plan.exchange.overlapped,
        gradient_precision=bound.workload.gradient_precision,
        recomputation=shape.recomputation,
        attention=shape.attention or ATTENTION_OF[shape.recomputation],
        precision=bound.workload.precision,
        architecture=None,
    )


def torchtitan_files(
    bound: BoundPlan, hosts: Mapping[int, SiteHosts]
) -> tuple[dict[str, str], dict[str, tuple[LaunchHost, ...]]]:
    """Return configurations and orders, and the hosts of each launch, by its folder.

    Raises
    ------
    ValueError
        If torchtitan cannot be told the plan.
    """
    files: dict[str, str] = {}
    ranks: dict[str, tuple[LaunchHost, ...]] = {}
    launches, orders = launches_of(TORCHTITAN, bound.plan), list(orders_of_replicas(bound))
    for number, replicas in enumerate(launches):
        folder = "" if len(launches) == 1 else f"{REPLICA}{number}/"
        own = orders[number : number + 1] if folder else orders
        outer = _outer(bound, number, len(launches)) if folder else None
        config = _config(bound, replicas, outer)
        files[f"{folder}{CONFIG}"] = config.text()
        ranks[folder] = rank_hosts(bound, replicas, "stage", hosts)
        if not config.parallelism.pipeline_parallel_schedule_csv:
            continue
        if len(set(own)) > 1:
            raise ValueError(
                "trainer torchtitan: all replicas must do their passes in one order, as a launch "
                f"has one file of orders; {bound.plan.schedule} has others for some"
            )
        files[f"{folder}{ORDERS}"] = orders_text(own[0])
    return files, ranks


def _config(
    bound: BoundPlan, replicas: tuple[tuple[Stage, ...], ...], outer: OuterTable | None
) -> TorchtitanConfig:
    plan, shape, workload = bound.plan, bound.workload.shape, bound.workload
    assert shape is not None
    (devices, is_wave), first = devices_of(replicas[0]), replicas[0][0].domain
    own, in_pipeline, size = plan.parallelism[first], len(devices) > 1, bound.rank_sequences(first)
    shard = 1 if own.sharding == "none" else own.data
    if plan.exchange.sharded:
        shard *= len(replicas)
    count = workload.num_microbatches // len(plan.placements) if in_pipeline else 1
    bits = plan.synchronisation.bits_per_value if outer else 32.0
    return TorchtitanConfig(
        model=llama_sizes(
            architecture_of_job(workload), workload.num_layers, in_pipeline=in_pipeline
        ),
        training=TrainingTable(
            seq_len=shape.sequence,
            local_batch_size=int(size) * count,
            global_batch_size=round(workload.num_microbatches * shape.batch_size),
            dtype=EXCHANGED_BITS[bits][1],
        ),
        parallelism=ParallelismTable(
            tensor_parallel_degree=own.tensor,
            enable_sequence_parallel=own.sequence_parallel,
            context_parallel_degree=own.context,
            data_parallel_replicate_degree=own.data * len(replicas) // shard,
            data_parallel_shard_degree=shard,
            fsdp_reshard_after_forward="always" if own.sharding == "parameters" else "never",
            pipeline_parallel_degree=len(devices),
            pipeline_parallel_schedule="ZBVZeroBubble" if is_wave else "1F1B",
            pipeline_parallel_schedule_csv=(
                ORDERS if in_pipeline and plan.sends == "overlapped" else ""
            ),
            pipeline_parallel_microbatch_size=int(size),
            module_fqns_per_model_part=module_names([one.num_layers for one in replicas[0]]),
        ),
        activation_checkpoint=CheckpointTable(
            mode="full" if shape.recomputation == "full" else "none"
        ),
        quantization=QuantizationTable(linear=workload.precision),
        fault_tolerance=outer,
    )


def _outer(bound: BoundPlan, number: int, num_launches: int) -> OuterTable:
    mode = bound.plan.synchronisation
    fragments = [one.layers for one in mode.fragments(bound.workload.num_layers)]
    return OuterTable(
        replica_id=number,
        group_size=num_launches,
        min_replica_size=num_launches,
        sync_steps=mode.steps_between,
        fragment_sync_delay=mode.overlap_steps,
        should_quantize=EXCHANGED_BITS[mode.bits_per_value][0],
        num_fragments=len(fragments),
        module_fqns_per_model_fragment=with_ends(fragments) if len(fragments) > 1 else (),
    )


def reference_files(
    bound: BoundPlan, hosts: Mapping[int, SiteHosts]
) -> tuple[dict[str, str], dict[str, tuple[LaunchHost, ...]]]:
    """Return what the runtime runs, and hosts with the number of ranks on each.

    Raises
    ------
    ValueError
        If the runtime cannot run the plan.
    """

    def host_of(device: tuple[int, int]) -> tuple[int, int]:
        domain, number = device
        size = bound.plan.parallelism[domain].gpus_per_device
        return domain, number * size // hosts[domain].num_gpus

    runs = groupby(rank_devices(bound), key=host_of)
    own = tuple(
        LaunchHost(
            rank=rank,
            name=hosts[domain].names[host],
            num_gpus=len(list(run)),
            site=bound.topology.domains[domain].name,
        )
        for rank, ((domain, host), run) in enumerate(runs)
    )
    return runtime_files(as_run(bound)), {"": own}
