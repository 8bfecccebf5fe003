"""Files of launches of torchtitan: one of all replicas, or one of each that DiLoCo joins."""

from collections.abc import Mapping

from agents.decision.bound_plan import BoundPlan
from agents.trainers.plan_checks import launches_of
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
from des.plan.placement import Stage
from scenarios.iteration.launch_folder import LaunchHost, architecture_of_job
from scenarios.iteration.torchtitan_launch import CONFIG, ORDERS, REPLICA, orders_of_replicas
from scenarios.launch.rank_hosts import devices_of, rank_hosts
from scenarios.launch.site_hosts import SiteHosts


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
