"""Files of a launch of Megatron-LM."""

from collections.abc import Mapping
from math import ceil

from agents.decision.bound_plan import BoundPlan
from agents.trainers.megatron_arguments import MegatronCommand, model_lines, plan_lines
from agents.trainers.plan_checks import domains_in_use
from agents.trainers.trainer import HostOrder
from des.job.transformer import ATTENTION_OF
from des.schedules import schedule_named
from scenarios.iteration.launch_folder import ARGUMENTS, LaunchHost, architecture_of_job
from scenarios.launch.rank_hosts import devices_of, rank_hosts
from scenarios.launch.site_hosts import SiteHosts

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
