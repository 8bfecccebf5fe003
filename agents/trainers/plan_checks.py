"""Plans that a trainer cannot run, refused with the trainer's own numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from agents.trainers.trainer import Trainer, base_schedule, outer_exchange_of
from des import Parallelism, Plan, Topology, Workload
from des.plan.placement import Stage
from des.plan.synchronisation import EVERY_STEP
from des.schedules import is_static, schedule_named

MOST_ASSUMED_TENSOR = 8
"""Largest tensor parallelism in a domain whose servers are not known."""


def check_plan(trainer: Trainer, topology: Topology, workload: Workload, plan: Plan) -> None:
    """Refuse a plan that the trainer cannot run; it must be one that `Plan.check_against` allows.

    Raises
    ------
    ValueError
        Naming the trainer, what it allows and what came.
    """
    trainer.require_schedules((plan.schedule,))
    trainer.require_precision(workload.precision)
    checks = (
        (_unbound(plan),)
        if trainer.is_ideal
        else (
            _bound(topology, plan),
            _degrees(trainer, topology, plan),
            _stages(trainer, plan),
            _groups(trainer, workload, plan),
            _sequences(trainer, workload, plan),
            _numbers(trainer, workload, plan),
            _exchange(trainer, plan),
            _sharded(trainer, topology, plan),
            _hosts(trainer, topology, plan),
        )
    )
    for refusal in chain.from_iterable(checks):
        raise ValueError(f"trainer {trainer.name}: {refusal}")


def domains_in_use(plan: Plan) -> tuple[int, ...]:
    """Domains that hold layers, in the order in which the replicas reach them."""
    layers = (one.domain_of_layer for one in plan.placements)
    return tuple(dict.fromkeys(domain for each in layers for domain in each))


def launches_of(trainer: Trainer, plan: Plan) -> tuple[tuple[tuple[Stage, ...], ...], ...]:
    """Replicas, as stages, of each launch of a trainer; most have one launch for all."""
    replicas = plan.stages_of_replicas
    if trainer.replicas_apart and outer_exchange_of(plan.synchronisation) != "every_step":
        return tuple((each,) for each in replicas)
    return (replicas,)


def _unbound(plan: Plan) -> Iterator[str]:
    if plan.parallelism:
        yield (
            "parallelism must be left out, as a domain is one perfect device; "
            f"got {plan.parallelism[0]}"
        )


def _bound(topology: Topology, plan: Plan) -> Iterator[str]:
    """GPUs of every domain must be divided up, within a server where servers are not known."""
    if not plan.parallelism:
        yield "parallelism must say how each domain in use divides its GPUs, got none"
    for index in domains_in_use(plan):
        domain, tensor = topology.domains[index], plan.parallelism[index].tensor
        if domain.nodes is None and tensor > MOST_ASSUMED_TENSOR:
            yield (
                f"tensor must be at most {MOST_ASSUMED_TENSOR} in domain {domain.name}, whose "
                f"servers are not known; got {tensor}"
            )


def _degrees(trainer: Trainer, topology: Topology, plan: Plan) -> Iterator[str]:
    """One tensor, data, context and expert degree and one sharding in a launch."""
    for index in () if trainer.has_context else domains_in_use(plan):
        if plan.parallelism[index].context > 1:
            yield (
                "context must be 1, as a pipeline does not divide sequences; got "
                f"{plan.parallelism[index].context} in {topology.domains[index].name}"
            )
    if not trainer.equal_degrees:
        return
    for launch in launches_of(trainer, plan):
        found: dict[Parallelism, str] = {}
        for stage in (one for replica in launch for one in replica):
            own = replace(plan.parallelism[stage.domain], pipeline=1, chunks=1, chunk_order="loop")
            found.setdefault(own, topology.domains[stage.domain].name)
        if len(found) > 1:
            each = "; ".join(f"{name}: {_degrees_text(own)}" for own, name in found.items())
            yield (
                "tensor, data, context and expert degrees and sharding must be equal in all "
                f"domains in use; got {each}"
            )


def _degrees_text(own: Parallelism) -> str:
    """Degrees of a domain without its pipeline."""
    return str(own).replace(" x pipeline 1", "")


def _stages(trainer: Trainer, plan: Plan) -> Iterator[str]:
    """Stages of each device, and layers of each stage."""
    for launch in launches_of(trainer, plan):
        layers = [tuple(stage.num_layers for stage in replica) for replica in launch]
        if trainer.equal_degrees:
            if len(set(layers)) > 1:
                yield f"layers of the stages must be equal in all replicas; got {layers}"
            for replica in launch:
                yield from _device_stages(replica, plan.schedule)
        for own in () if trainer.uneven_layers else layers:
            ends = [own[0] + 1, *own[1:-1], own[-1] + 1] if len(own) > 1 else list(own)
            if len(set(own)) > 1 and not (trainer.ends_are_layers and len(set(ends)) == 1):
                counted = ", with embedding and head as layers or without"
                yield (
                    "layers must be divided evenly over the stages"
                    f"{counted if trainer.ends_are_layers else ''}; got {own}"
                )


def _device_stages(stages: Sequence[Stage], schedule: str) -> Iterator[str]:
    """Equally many stages a device; one of them where the schedule knows stages alone."""
    per_device: dict[tuple[int, int], int] = {}
    for stage in stages:
        key = stage.domain, stage.device
        per_device[key] = per_device.get(key, 0) + 1
    counts = set(per_device.values())
    if len(counts) > 1:
        yield f"every device must have equally many stages; got {min(counts)} and {max(counts)}"
    if counts != {1} and is_static(schedule):
        yield (
            f"every device must have one stage under {schedule}, so chunks must be 1 and a domain "
            f"must not come back in the placement; got {max(counts)}"
        )


def _groups(trainer: Trainer, workload: Workload, plan: Plan) -> Iterator[str]:
    """Groups of microbatches under interleaving."""
    if not trainer.whole_groups or base_schedule(plan.schedule) != "interleaved_1f1b":
        return
    factor = schedule_named(plan.schedule)[1] or 1.0
    shares = plan.microbatches_of_replicas(workload.num_microbatches)
    for stages, share in zip(plan.stages_of_replicas, shares, strict=True):
        num_devices = len({(one.domain, one.device) for one in stages})
        size = round(factor * num_devices)
        rest = share % size
        if 0 < rest < num_devices:
            yield (
                f"the last group of {size} microbatches must hold at "
                f"least the pipeline-parallel size {num_devices} of them; got {rest}, as each "
                f"replica does {share}"
            )


def _sequences(trainer: Trainer, workload: Workload, plan: Plan) -> Iterator[str]:
    """Whole sequences a data rank, and as many microbatches in all replicas."""
    shape = workload.shape
    if not trainer.equal_shares or shape is None:
        return
    data = max(plan.parallelism[domain].data for domain in domains_in_use(plan))
    ranks = data * len(plan.placements)
    sequences = round(workload.num_microbatches * shape.batch_size)
    size, rest = divmod(shape.batch_size, data)
    if sequences < ranks:
        yield (
            f"global batch size must be at least the data-parallel size {ranks}, a sequence for "
            f"each rank; got {sequences}"
        )
    if rest:
        yield (
            f"a microbatch must have whole sequences for each of {data} data ranks of a stage; "
            f"got {shape.batch_size:g} sequences"
        )
    shares = plan.microbatches_of_replicas(workload.num_microbatches)
    if len(set(shares)) > 1:
        yield (
            f"global batch size must be a multiple of micro-batch size x data-parallel size, "
            f"{size:g} x {ranks}, as all replicas do equally many microbatches; got {sequences}, "
            f"which is shares of {', '.join(map(str, shares))}"
        )


def _numbers(trainer: Trainer, workload: Workload, plan: Plan) -> Iterator[str]:
    """Types of gradients, activations made again, heads that divide, and blocking sends."""
    allowed = ", ".join(trainer.gradient_precisions)
    if workload.gradient_precision not in trainer.gradient_precisions:
        yield f"gradient_precision must be one of {allowed}; got {workload.gradient_precision!r}"
    shape = workload.shape
    if shape is not None and shape.recomputation not in trainer.recomputations:
        allowed = ", ".join(trainer.recomputations)
        yield f"recomputation must be one of {allowed}; got {shape.recomputation!r}"
    if trainer.chooses_ways:
        return
    sends = trainer.sends_under(plan.schedule)
    if plan.sends != sends:
        yield f"sends must be {sends} under {plan.schedule}; got {plan.sends!r}"
    for own in {plan.parallelism[domain] for domain in domains_in_use(plan)}:
        if shape is not None and shape.architecture.num_heads % own.tensor:
            yield (
                f"tensor must divide the {shape.architecture.num_heads} heads of {workload.name}; "
                f"got {own.tensor}"
            )


def _exchange(trainer: Trainer, plan: Plan) -> Iterator[str]:
    """Exchange between replicas, and messages that shrink."""
    mode = plan.synchronisation
    kind = outer_exchange_of(mode)
    if kind not in trainer.synchronisations:
        allowed = ", ".join(trainer.synchronisations)
        yield f"synchronisation must be one of {allowed}; got {kind}"
    bits = (EVERY_STEP.bits_per_value,) if kind == "every_step" else trainer.bits
    if trainer.bits and mode.bits_per_value not in bits:
        allowed = ", ".join(f"{one:g}" for one in bits)
        yield f"bits_per_value of {kind} must be one of {allowed}; got {mode.bits_per_value:g}"
    if trainer.chooses_ways:
        return
    for field, is_other in (
        ("tree of the exchange", bool(plan.exchange.tree)),
        ("shares_domains", plan.shares_domains),
        ("activation_compression", plan.activation_compression > 1.0),
    ):
        if is_other:
            yield f"{field} must be the default, as it cannot be chosen; got another"


def _sharded(trainer: Trainer, topology: Topology, plan: Plan) -> Iterator[str]:
    """State that the data ranks spread over themselves."""
    for stages in plan.stages_of_replicas:
        allowed = trainer.pipeline_sharding if len(stages) > 1 else trainer.sharding
        for domain in dict.fromkeys(stage.domain for stage in stages):
            own = plan.parallelism_of(domain)
            if own is not None and own.sharding not in allowed:
                yield (
                    f"sharding {'in a pipeline ' if len(stages) > 1 else ''}must be one of "
                    f"{', '.join(allowed)}; got {own.sharding!r} in {topology.domains[domain].name}"
                )


def _hosts(trainer: Trainer, topology: Topology, plan: Plan) -> Iterator[str]:
    """Ranks over hosts where one launch has several replicas, see `HostOrder`."""
    if not trainer.host_orders:
        return
    for launch in launches_of(trainer, plan):
        domains = dict.fromkeys(stage.domain for replica in launch for stage in replica)
        shared = [(topology.domains[domain], plan.parallelism[domain]) for domain in domains]
        if len(launch) == 1 or (
            "replica" in trainer.host_orders and all(own.data == 1 for _, own in shared)
        ):
            continue
        for domain, own in shared:
            size = domain.num_gpus if domain.nodes is None else domain.nodes.gpus_per_node
            if own.gpus_per_device % size:
                one = " or data must be 1," if "replica" in trainer.host_orders else ""
                yield (
                    f"stages of several replicas must fill whole servers,{one} as consecutive "
                    f"ranks form a stage; got {own.gpus_per_device} GPUs a stage on servers of "
                    f"{size} in {domain.name}"
                )
