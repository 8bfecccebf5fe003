"""Files of launches of torchtitan: one of all replicas, or one of each that DiLoCo joins."""

from collections.abc import Mapping

from agents.decision.bound_plan import BoundPlan
from agents.trainers.plan_checks import launches_of
from agents.trainers.torchtitan import TORCHTITAN
from agents.trainers.torchtitan_config import TorchftExchange, TorchtitanConfig
from agents.trainers.torchtitan_orders import orders_text
from agents.trainers.torchtitan_tables import config_tables, model_table, toml_text
from des.plan.placement import Stage
from des.plan.synchronisation import agree_every_step
from des.schedules import Orders
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
        own = orders[number : number + len(replicas)] if folder else orders
        config = _config(bound, replicas, (number, len(launches)))
        files |= _launch_files(bound, config, own, folder)
        ranks[folder] = rank_hosts(bound, replicas, "stage", hosts)
    return files, ranks


def _launch_files(
    bound: BoundPlan, config: TorchtitanConfig, orders: list[Orders], folder: str
) -> dict[str, str]:
    model = model_table(
        architecture_of_job(bound.workload),
        bound.workload.num_layers,
        in_pipeline=config.pipeline > 1,
    )
    tables = {"model": model} | config_tables(config, orders=ORDERS)
    files = {f"{folder}{CONFIG}": toml_text(tables)}
    if not config.has_orders:
        return files
    if len(set(orders)) > 1:
        raise ValueError(
            f"trainer torchtitan: all replicas must do their passes in one order, as a launch has "
            f"one file of orders; {bound.plan.schedule} has others for some"
        )
    return files | {f"{folder}{ORDERS}": orders_text(orders[0])}


def _config(
    bound: BoundPlan, replicas: tuple[tuple[Stage, ...], ...], place: tuple[int, int]
) -> TorchtitanConfig:
    """Configuration of a launch, by its number and how many there are."""
    plan, shape = bound.plan, bound.workload.shape
    assert shape is not None
    (devices, is_wave), first = devices_of(replicas[0]), replicas[0][0].domain
    own = plan.parallelism[first]
    if own.sharding == "none" or own.data * len(replicas) == 1:
        shard = 1
    else:
        shard = own.data * (len(replicas) if plan.exchange.sharded else 1)
    return TorchtitanConfig(
        tensor=own.tensor,
        pipeline=len(devices),
        context=own.context,
        replicate=own.data * len(replicas) // shard,
        shard=shard,
        reshards=own.sharding == "parameters",
        sequence_parallel=own.sequence_parallel,
        stage_layers=tuple(stage.num_layers for stage in replicas[0]),
        is_wave=is_wave,
        has_orders=len(devices) > 1 and plan.sends == "overlapped",
        num_microbatches=bound.workload.num_microbatches // len(plan.placements),
        microbatch_size=int(bound.rank_sequences(first)),
        global_batch_size=round(bound.workload.num_microbatches * shape.batch_size),
        sequence_length=shape.sequence,
        precision=bound.workload.precision,
        recomputation=shape.recomputation,
        outer=_outer(bound, *place),
    )


def _outer(bound: BoundPlan, number: int, num_launches: int) -> TorchftExchange | None:
    mode = bound.plan.synchronisation
    if num_launches == 1 or agree_every_step(mode):
        return None
    return TorchftExchange(
        replica=number,
        num_replicas=num_launches,
        steps_between=mode.steps_between,
        delay_steps=mode.overlap_steps,
        bits=mode.bits_per_value,
        fragments=tuple(one.layers for one in mode.fragments(bound.workload.num_layers)),
    )
