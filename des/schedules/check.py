"""One checker for all schedules: completeness, order of passes, deadlocks, memory."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from operator import ge
from typing import NamedTuple, cast, get_args

from des.schedules.operations import MESSAGE_OF, Operation, Order, Orders, Pass
from des.schedules.pipeline import Pipeline


class DeadlockError(ValueError):
    """Workers wait for each other for ever, as orders or receives ask them to."""


def check_schedule(
    name: str, orders: object, device_of_stage: Sequence[int], num_microbatches: int
) -> Orders:
    """Return the orders that a schedule's maker gave; refuse those that no workers can execute.

    Raises
    ------
    ValueError
        As `check_orders`, or if there is anything but tuples of operations, at least one each.
    DeadlockError
        As `completion_order`.
    """
    owner = f"schedule {name}"
    for worker, order in enumerate(orders if isinstance(orders, tuple) else (orders,)):
        for one in order if isinstance(order, tuple) and order else (order,):
            if not isinstance(one, Operation):
                raise ValueError(
                    f"{owner}: must give a tuple of orders, each a tuple of operations, at least "
                    f"one; got {one!r:.80} in order {worker}"
                )
    found = cast(Orders, orders)
    check_orders(found, device_of_stage, num_microbatches, owner)
    for _ in completion_order(found, len(device_of_stage), owner):
        pass
    return found


def check_orders(
    orders: Sequence[Order],
    device_of_stage: Sequence[int],
    num_microbatches: int,
    owner: str = "schedule",
) -> None:
    """Refuse orders that do not do every pass of every microbatch once, or do one too early.

    Every stage belongs to one worker, every worker to one device. A microbatch's backward pass is
    either whole or halved. What depends on other workers is checked by `completion_order`.

    Raises
    ------
    ValueError
        Naming the operation and what is missing, repeated or too early.
    """
    worker_of_stage: dict[int, int] = {}
    for worker, order in enumerate(orders):
        first_of_stage: dict[int, Operation] = {}
        for operation in order:
            first_of_stage.setdefault(operation.stage, operation)
        for operation in first_of_stage.values():
            if operation.stage not in range(len(device_of_stage)):
                raise ValueError(
                    f"{owner}: stages must be numbered 0 to {len(device_of_stage) - 1}, "
                    f"got {operation}"
                )
            if worker_of_stage.setdefault(operation.stage, worker) != worker:
                raise ValueError(f"{owner}: a stage must be in one order, got {operation} in two")
        if len({device_of_stage[stage] for stage in first_of_stage}) > 1:
            raise ValueError(
                f"{owner}: an order must hold stages of one device, got several in order {worker}"
            )
    for stage in range(len(device_of_stage)):
        order = orders[worker_of_stage[stage]] if stage in worker_of_stage else ()
        own = [operation for operation in order if operation.stage == stage]
        _check_stage(owner, stage, own, num_microbatches)


def _check_stage(owner: str, stage: int, order: Sequence[Operation], num_microbatches: int) -> None:
    position: dict[tuple[str, int], int] = {
        (kind, microbatch): at for at, (kind, microbatch, _) in enumerate(order)
    }
    if _is_in_turn(position, len(order), num_microbatches):
        return
    for (kind, microbatch), count in Counter((one.kind, one.microbatch) for one in order).items():
        is_known = kind in get_args(Pass) and microbatch in range(num_microbatches)
        if count > 1 or not is_known:
            raise ValueError(
                f"{owner}: every pass of each of {num_microbatches} microbatches must be done "
                f"once, got {Operation(kind, microbatch, stage)} {count}x"
            )
    for microbatch in range(num_microbatches):
        passes = [kind for kind in "FBDW" if (kind, microbatch) in position]
        if passes not in (["F", "B"], ["F", "D", "W"]):
            raise ValueError(
                f"{owner}: stage {stage} must do F and B, or F, D and W, of microbatch "
                f"{microbatch}; got {', '.join(passes) or 'nothing'}"
            )
        for early, late in pairwise(passes):
            if position[late, microbatch] < position[early, microbatch]:
                raise ValueError(
                    f"{owner}: stage {stage} must do {early}{microbatch} before "
                    f"{late}{microbatch}, got the reverse"
                )


def _is_in_turn(
    position: Mapping[tuple[str, int], int], num_operations: int, num_microbatches: int
) -> bool:
    """Whether a stage does F and B, or F, D and W, of every microbatch, in turn, and nothing else.

    The usual cases are recognised by their positions; any other is checked pass by pass.
    """
    passes = "FDW" if ("D", 0) in position else "FB"
    if not len(position) == num_operations == len(passes) * num_microbatches:
        return False
    nowhere = len(position)
    return all(
        position.get((early, each), nowhere) < position.get((late, each), -1)
        for early, late in pairwise(passes)
        for each in range(num_microbatches)
    )


def input_of(operation: Operation, num_stages: int) -> tuple[str, int, int] | None:
    """Key (``F`` or ``B``, microbatch, stage) of the output that an operation waits for, if any.

    ``B`` stands for the input gradient, whether a whole backward pass or its first half makes it.
    """
    kind, microbatch, stage = operation
    if kind == "F":
        return ("F", microbatch, stage - 1) if stage > 0 else None
    if kind == "W" or stage == num_stages - 1:
        return None
    return ("B", microbatch, stage + 1)


def completion_order(
    orders: Sequence[Order], num_stages: int, owner: str = "schedule"
) -> Iterator[tuple[int, Operation]]:
    """Yield (worker, operation) so that everything comes after what it waits for.

    Raises
    ------
    DeadlockError
        If the workers wait for each other; the message names the operations.
    """
    done: set[tuple[str, int, int]] = set()
    waiting: dict[tuple[str, int, int], int] = {}
    position = [0] * len(orders)
    ready = list(range(len(orders)))[::-1]
    while ready:
        worker = ready.pop()
        order, at = orders[worker], position[worker]
        while at < len(order):
            operation = order[at]
            needed = input_of(operation, num_stages)
            if needed is not None and needed not in done:
                waiting[needed] = worker
                break
            yield worker, operation
            at += 1
            kind, microbatch, stage = operation
            if kind != "W":
                made = (MESSAGE_OF[kind], microbatch, stage)
                done.add(made)
                if made in waiting:
                    ready.append(waiting.pop(made))
        position[worker] = at
    stuck = [str(order[at]) for order, at in zip(orders, position, strict=True) if at < len(order)]
    if stuck:
        raise DeadlockError(f"{owner}: deadlock, waiting for their inputs: {', '.join(stuck)}")


@lru_cache(maxsize=1024)
def most_held(orders: Orders, num_stages: int) -> tuple[int, ...]:
    """Most microbatches that each stage holds at once, from the start of F to the end of B or W.

    Examples
    --------
    >>> from des.schedules.flush import gpipe, one_f_one_b
    >>> most_held(one_f_one_b(4, 8), 4), most_held(gpipe(2, 8), 2)
    ((4, 3, 2, 1), (8, 8))
    """
    held, most = [0] * num_stages, [0] * num_stages
    for order in orders:
        for kind, _, stage in order:
            held[stage] += (kind == "F") - (kind in "BW")
            most[stage] = max(most[stage], held[stage])
    return tuple(most)


class Held(NamedTuple):
    """Microbatches of a stage in memory: before their input gradient, and between the halves."""

    stage: int
    num_whole: int
    num_halved: int


@lru_cache(maxsize=1024)
def peaks_held(orders: Orders) -> tuple[tuple[tuple[Held, ...], ...], ...]:
    """Activations that every worker holds at its potential peaks, for any microbatch size.

    These are starts of forwards and ends of input gradients at which no other moment has at least
    as many of everything.
    """
    return tuple(_undominated(_moments(order)) for order in orders)


def _moments(order: Order) -> dict[tuple[Held, ...], None]:
    """Activations held at the start of each forward and the end of each D, without repetition."""
    stages = sorted({operation.stage for operation in order})
    whole, halved = dict.fromkeys(stages, 0), dict.fromkeys(stages, 0)
    moments: dict[tuple[Held, ...], None] = {}
    for kind, _, stage in order:
        whole[stage] += (kind == "F") - (kind in "BD")
        halved[stage] += (kind == "D") - (kind == "W")
        if kind in "FD":
            moments[tuple(Held(one, whole[one], halved[one]) for one in stages)] = None
    return moments


def _undominated(moments: Iterable[tuple[Held, ...]]) -> tuple[tuple[Held, ...], ...]:
    kept: dict[tuple[int, ...], tuple[Held, ...]] = {}
    for moment in moments:
        counts = tuple(num for held in moment for num in held[1:])
        if not any(all(map(ge, other, counts)) for other in kept):
            kept = {other: of for other, of in kept.items() if not all(map(ge, counts, other))}
            kept[counts] = moment
    return tuple(kept.values())


def peak_bytes(order: Order, pipeline: Pipeline) -> tuple[float, Operation]:
    """Most activation memory that an order needs at once, and the first operation to need it.

    Raises
    ------
    ValueError
        If the order is empty.
    """
    if not order:
        raise ValueError("schedule: an order must hold at least one operation, got none")
    held = most = 0.0
    culprit = order[0]
    pairs = zip(pipeline.activation_bytes, pipeline.weight_input_bytes, strict=True)
    change_bytes = [{"F": own, "B": -own, "D": rest - own, "W": -rest} for own, rest in pairs]
    for operation in order:
        kind, _, stage = operation
        held += change_bytes[stage][kind]
        if held > most:
            most, culprit = held, operation
    return most, culprit


def check_order_memory(orders: Sequence[Order], pipeline: Pipeline) -> None:
    """Refuse orders that need more activation memory than a device has.

    Raises
    ------
    ValueError
        Naming the operation that does not fit any more, what it needs and what there is.
    """
    needed = [0.0] * pipeline.num_devices
    for order in orders:
        peak, culprit = peak_bytes(order, pipeline)
        device = pipeline.device_of_stage[culprit.stage]
        needed[device] += peak
        room = pipeline.memory_bytes[device]
        if needed[device] > room * (1.0 + 1e-9):  # sums of the same terms in another order
            raise ValueError(
                f"schedule: activations on device {device} must fit into {room / 1e9:.3f} GB, "
                f"{culprit} needs {needed[device] / 1e9:.3f} GB"
            )
