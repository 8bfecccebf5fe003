"""Launch files of torchtitan read back: one launch, or one of each replica of DiLoCo."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agents.decision.bound_plan import BoundPlan
from agents.trainers.torchtitan import TORCHTITAN
from agents.trainers.torchtitan_config import TorchftExchange, TorchtitanConfig
from agents.trainers.torchtitan_orders import read_orders
from agents.trainers.torchtitan_tables import config_of_tables, model_table, read_toml
from des import DiLoCo, GradientExchange, Parallelism, Plan, StreamingDiLoCo, Workload
from des.costs.feasibility import assign
from des.job.models import architecture_workload
from des.plan.parallelism import ChunkOrder, Sharding
from des.plan.synchronisation import EVERY_STEP, Synchronisation
from des.schedules import Orders
from scenarios.iteration.launch_folder import (
    HOSTS,
    LaunchedPlan,
    architecture_of_job,
    file_of,
    said_plan,
    sites_of_ranks,
)
from scenarios.iteration.rank_paths import (
    Path,
    parallelism_on_paths,
    paths_of_ranks,
    placement_on_path,
)

CONFIG, ORDERS, REPLICA = "config.toml", "schedule.csv", "replica-"
"""Files of a launch, and the folder of each where there are several, by its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launch:
    """One launch: its configuration, the sites that replicas pass, and orders if it has some."""

    config: TorchtitanConfig
    paths: tuple[Path, ...]
    data: int
    orders: Orders | None

    @property
    def order(self) -> ChunkOrder:
        """Way of stages through the ranks."""
        return "wave" if self.config.is_wave else "loop"

    @property
    def own(self) -> Parallelism:
        """Division of the work at a site, but for its stages."""
        config = self.config
        sharding: Sharding = "parameters" if config.reshards else "gradients"
        return Parallelism(
            tensor=config.tensor,
            data=self.data,
            context=config.context,
            sharding=sharding if config.shard * config.context > 1 else "none",
            sequence_parallel=config.sequence_parallel,
        )


def read_torchtitan_launch(files: Mapping[str, str]) -> LaunchedPlan:
    """Read the plan of the configuration of torchtitan on the hosts that are given.

    Raises
    ------
    ValueError
        Naming the file, what is allowed and what came.
    """
    said = said_plan(files)
    launches = [_launch(files, said, folder) for folder in _folders(files)]
    workload = _workload(launches, said)
    parallelism = list(said.plan.parallelism)
    for one in launches:
        found = parallelism_on_paths(
            said.topology, one.paths, one.own, one.config.num_chunks, one.order
        )
        for domain in {domain for path in one.paths for domain in path}:
            parallelism[domain] = found[domain]
    placements = [
        placement_on_path(path, one.config.stage_layers, one.order)
        for one in launches
        for path in one.paths
    ]
    schedule = said.plan.schedule if any(one.orders for one in launches) else "1f1b"
    plan = Plan(
        placement=placements[0],
        replicas=tuple(placements[1:]),
        schedule=schedule,
        parallelism=tuple(parallelism),
        exchange=GradientExchange(sharded=any(one.config.shard > one.data for one in launches)),
        synchronisation=_synchronisation(launches, said),
        sends=TORCHTITAN.sends_under(schedule),
    )
    _check_orders(launches, replace(said, workload=workload, plan=plan))
    return LaunchedPlan(said=said, workload=workload, plan=plan)


def _folders(files: Mapping[str, str]) -> list[str]:
    """Folders of the launches, in the order of their replicas."""
    if CONFIG in files:
        return [""]
    count = sum(name.startswith(REPLICA) and name.endswith(f"/{CONFIG}") for name in files)
    return [f"{REPLICA}{number}/" for number in range(max(1, count))]


def _launch(files: Mapping[str, str], said: BoundPlan, folder: str) -> _Launch:
    tables = read_toml(file_of(files, f"{folder}{CONFIG}"))
    own, num_layers = architecture_of_job(said.workload), said.workload.num_layers
    config = config_of_tables(tables, num_layers)
    model = model_table(own, num_layers, in_pipeline=config.pipeline > 1)
    if tables.get("model") != model:
        raise ValueError(
            f"{folder}{CONFIG}: model must be {own.name}, {model}; got {tables.get('model')}"
        )
    paths, data = paths_of_ranks(
        sites_of_ranks(file_of(files, f"{folder}{HOSTS}"), said.topology),
        group=config.tensor * config.context,
        pipeline=config.pipeline,
        replica_order=False,
    )
    ranks = data * len(paths)
    if config.replicate * config.shard != ranks or config.shard not in (1, data, ranks):
        raise ValueError(
            f"{folder}{CONFIG}: data_parallel_replicate_degree x data_parallel_shard_degree must "
            f"be the {ranks} data ranks of the hosts, sharded not at all, over the {data} of a "
            f"site or over all; got {config.replicate} x {config.shard}"
        )
    orders = read_orders(file_of(files, f"{folder}{ORDERS}")) if config.has_orders else None
    return _Launch(config=config, paths=paths, data=data, orders=orders)


def _workload(launches: Sequence[_Launch], said: BoundPlan) -> Workload:
    """The job that all launches do together."""
    sizes = {one.config.microbatch_size * one.data for one in launches}
    configs = [one.config for one in launches]
    steps = {(one.global_batch_size, one.num_microbatches) for one in configs}
    num_replicas = sum(len(one.paths) for one in launches)
    if len(sizes) > 1 or len(steps) > 1:
        raise ValueError(
            f"{CONFIG}: all launches must do equal microbatches and equally many; got "
            f"{sorted(sizes)} sequences and {sorted(steps)}"
        )
    ((sequences, num_microbatches),), (size,) = steps, sizes
    if sequences != size * num_microbatches * num_replicas:
        raise ValueError(
            f"{CONFIG}: global_batch_size must be {size * num_microbatches * num_replicas}, "
            f"{num_microbatches} microbatches of {size} on {num_replicas} replicas; got {sequences}"
        )
    return architecture_workload(
        architecture_of_job(said.workload),
        num_layers=said.workload.num_layers,
        num_microbatches=num_microbatches * num_replicas,
        microbatch_size=size,
        sequence_length=configs[0].sequence_length,
        recomputation=configs[0].recomputation,
        precision=configs[0].precision,
        gradient_precision="fp32",
    )


def _synchronisation(launches: Sequence[_Launch], said: BoundPlan) -> Synchronisation:
    """The exchange that joins the launches."""
    outer = [one.config.outer for one in launches if one.config.outer is not None]
    if not outer:
        return EVERY_STEP
    numbered = [replace(outer[0], replica=number) for number in range(len(launches))]
    if outer != numbered or outer[0].num_replicas != len(launches):
        raise ValueError(
            f"{CONFIG}: fault_tolerance must be equal in all {len(launches)} launches but for "
            f"replica_id, which counts them from 0, and group_size {len(launches)}; got {outer}"
        )
    return _mode(outer[0], said)


def _mode(outer: TorchftExchange, said: BoundPlan) -> Synchronisation:
    count, num_layers = len(outer.fragments), said.workload.num_layers
    kept = said.plan.synchronisation.outer_state
    found: Synchronisation = DiLoCo(
        steps_between=outer.steps_between,
        bits_per_value=outer.bits,
        behind_backward=TORCHTITAN.exchanges_behind_backward,
        outer_state=kept,
    )
    if count > 1 or outer.delay_steps:
        found = StreamingDiLoCo(
            steps_between=outer.steps_between,
            layers_per_fragment=-(-num_layers // count),
            overlap_steps=outer.delay_steps,
            bits_per_value=outer.bits,
            outer_state=kept,
        )
    needed = tuple(one.layers for one in found.fragments(num_layers))
    if needed != outer.fragments:
        raise ValueError(
            f"{CONFIG}: fragments must be of layers {needed}, which are simulated; got "
            f"{outer.fragments}"
        )
    return found


def orders_of_replicas(bound: BoundPlan) -> Iterator[Orders]:
    """Yield the orders of the ranks of each replica, its stages numbered from 0."""
    assigned = assign(bound.topology, bound.workload, bound.plan, bound.corrections)
    first = 0
    for count in assigned.replica_sizes:
        yield tuple(
            tuple(each._replace(stage=each.stage - first) for each in order)
            for order in assigned.orders
            if order and first <= order[0].stage < first + count
        )
        first += count


def _check_orders(launches: Sequence[_Launch], bound: BoundPlan) -> None:
    """Refuse files of orders other than those of the schedule that is simulated."""
    needed = orders_of_replicas(bound)
    for launch in launches:
        for _, own in zip(launch.paths, needed, strict=False):
            for rank, order in enumerate(own if launch.orders is not None else ()):
                given = (launch.orders or ())[rank : rank + 1]
                if given != (order,) or len(launch.orders or ()) != len(own):
                    raise ValueError(
                        f"{ORDERS}: must have a row for each of {len(own)} ranks, in the order of "
                        f"{bound.plan.schedule}, which is simulated; row {rank} is another"
                    )
