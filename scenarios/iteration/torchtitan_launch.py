"""Launch files of torchtitan read back: one launch, or one of each replica of DiLoCo."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agents.decision.bound_plan import BoundPlan
from agents.trainers.torchtitan import TORCHTITAN
from agents.trainers.torchtitan_config import (
    EXCHANGED_BITS,
    TorchtitanConfig,
    llama_sizes,
    read_config,
    with_ends,
)
from agents.trainers.torchtitan_orders import orders_text, read_orders
from des import DiLoCo, GradientExchange, Parallelism, Plan, StreamingDiLoCo, Workload
from des.costs.feasibility import assign
from des.job.models import build_workload
from des.plan.parallelism import ChunkOrder
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
from scenarios.iteration.megatron_plan import (
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
    orders: str

    @property
    def order(self) -> ChunkOrder:
        """Way of stages through the ranks."""
        return "wave" if self.config.is_wave else "loop"

    @property
    def own(self) -> Parallelism:
        """Division of the work at a site, but for its stages."""
        degrees = self.config.parallelism
        context, shards = degrees.context_parallel_degree, degrees.data_parallel_shard_degree
        whole = degrees.fsdp_reshard_after_forward == "never"
        return Parallelism(
            tensor=degrees.tensor_parallel_degree,
            data=self.data,
            context=context,
            sharding="none" if shards * context == 1 else "gradients" if whole else "parameters",
            sequence_parallel=degrees.enable_sequence_parallel,
        )

    @property
    def step(self) -> tuple[int, int, int]:
        """Sequences of a microbatch of all data ranks, microbatches, and sequences of a step."""
        training, degrees = self.config.training, self.config.parallelism
        size, count = training.local_batch_size, 0
        if degrees.pipeline_parallel_degree > 1:
            size = degrees.pipeline_parallel_microbatch_size
            count = training.local_batch_size // size
        return size * self.data, count, training.global_batch_size


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
    placements = []
    for one in launches:
        chunks = len(one.config.stage_layers) // len(one.paths[0])
        found = parallelism_on_paths(said.topology, one.paths, one.own, chunks, one.order)
        for path in one.paths:
            placements.append(placement_on_path(path, one.config.stage_layers, one.order))
            for domain in path:
                parallelism[domain] = found[domain]
    schedule = said.plan.schedule if any(one.orders for one in launches) else "1f1b"
    degrees = [(one.config.parallelism.data_parallel_shard_degree, one.data) for one in launches]
    plan = Plan(
        placement=placements[0],
        replicas=tuple(placements[1:]),
        schedule=schedule,
        parallelism=tuple(parallelism),
        exchange=GradientExchange(sharded=any(shard > data for shard, data in degrees)),
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
    config = read_config(file_of(files, f"{folder}{CONFIG}"))
    own, degrees = architecture_of_job(said.workload), config.parallelism
    pipeline = degrees.pipeline_parallel_degree
    model = llama_sizes(own, said.workload.num_layers, in_pipeline=pipeline > 1)
    if config.model != model:
        raise ValueError(f"{folder}{CONFIG}: must be of {own.name}, {model}; got {config.model}")
    paths, data = paths_of_ranks(
        sites_of_ranks(file_of(files, f"{folder}{HOSTS}"), said.topology),
        group=degrees.tensor_parallel_degree * degrees.context_parallel_degree,
        pipeline=pipeline,
        replica_order=False,
    )
    ranks, shard = data * len(paths), degrees.data_parallel_shard_degree
    if degrees.data_parallel_replicate_degree * shard != ranks or shard not in (1, data, ranks):
        raise ValueError(
            f"{folder}{CONFIG}: data_parallel_replicate_degree x data_parallel_shard_degree must "
            f"be the {ranks} data ranks of the hosts, sharded not at all, over the {data} of a "
            f"site or over all; got {degrees.data_parallel_replicate_degree} x {shard}"
        )
    name = degrees.pipeline_parallel_schedule_csv and pipeline > 1
    orders = file_of(files, f"{folder}{ORDERS}") if name else ""
    read_orders(orders)
    return _Launch(config=config, paths=paths, data=data, orders=orders)


def _workload(launches: Sequence[_Launch], said: BoundPlan) -> Workload:
    """The job that all launches do together."""
    first, num_replicas = launches[0], sum(len(one.paths) for one in launches)
    size, _, sequences = first.step
    count, rest = divmod(sequences, size * num_replicas)
    for one in launches:
        if rest or one.step not in ((size, 0, sequences), (size, count, sequences)):
            raise ValueError(
                f"{CONFIG}: each of {num_replicas} replicas must do {count} microbatches of {size} "
                f"sequences, {sequences} in all; got {one.step[1]} of {one.step[0]}"
            )
    config = first.config
    return build_workload(
        architecture_of_job(said.workload),
        num_layers=said.workload.num_layers,
        num_microbatches=count * num_replicas,
        microbatch_size=size,
        sequence_length=config.training.seq_len,
        recomputation="full" if config.activation_checkpoint.mode == "full" else "flash",
        precision=config.quantization.linear,
        gradient_precision="fp32",
    )


def _synchronisation(launches: Sequence[_Launch], said: BoundPlan) -> Synchronisation:
    """The exchange that joins the launches."""
    outer = launches[0].config.fault_tolerance
    if outer is None:
        return EVERY_STEP
    num_layers, kept = said.workload.num_layers, said.plan.synchronisation.outer_state
    given = outer.should_quantize, launches[0].config.training.dtype
    bits = next((one for one, own in EXCHANGED_BITS.items() if own == given), 0.0)
    mode: Synchronisation = DiLoCo(
        steps_between=outer.sync_steps,
        bits_per_value=bits,
        behind_backward=TORCHTITAN.exchanges_behind_backward,
        outer_state=kept,
    )
    if outer.num_fragments > 1 or outer.fragment_sync_delay:
        mode = StreamingDiLoCo(
            steps_between=outer.sync_steps,
            layers_per_fragment=-(-num_layers // outer.num_fragments),
            overlap_steps=outer.fragment_sync_delay,
            bits_per_value=bits,
            outer_state=kept,
        )
    fragments = [one.layers for one in mode.fragments(num_layers)]
    names = with_ends(fragments) if len(fragments) > 1 else ()
    for number, one in enumerate(launches):
        needed = replace(
            outer,
            replica_id=number,
            group_size=len(launches),
            min_replica_size=len(launches),
            module_fqns_per_model_fragment=names,
        )
        if one.config.fault_tolerance != needed:
            raise ValueError(
                f"{CONFIG}: fault_tolerance of launch {number} must be {needed}, as in the others; "
                f"got {one.config.fault_tolerance}"
            )
    return mode


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
        for _ in launch.paths:
            if launch.orders not in ("", text := orders_text(next(needed))):
                rows = zip(text.splitlines(), [*launch.orders.splitlines(), ""], strict=False)
                rank = next(number for number, (own, row) in enumerate(rows) if own != row)
                raise ValueError(
                    f"{ORDERS}: must have the orders of {bound.plan.schedule}, which is simulated, "
                    f"a row for each of {len(text.splitlines())} ranks; row {rank} is another"
                )
