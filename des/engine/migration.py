"""Time to change the plan of a running training: model state over the links, and a restart."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from des.base.checks import require_non_negative
from des.clock import Clock, Message
from des.engine.network import Carrier, Network, Parcel
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.plan import Plan
from des.plan.replacement import RESTART_S
from des.world.topology import Topology


class LayerMove(NamedTuple):
    """The model state of one layer that goes from one domain to another, both by position."""

    layer: int
    source: int
    target: int
    num_bytes: float


def layer_moves(workload: Workload, old: Plan, new: Plan) -> Iterator[LayerMove]:
    """Yield the moves that a change of plan needs, by replica and layer.

    A domain that holds a layer already, for whichever replica, is not sent it again. The others get
    it from where the same replica had it; a replica that is new, from where the first one had it.
    All `Workload.state_bytes` of its parameters go once to each domain: how its GPUs share them is
    a matter of the network inside, which is taken to cost no time.
    """
    _check_layers(workload, old)
    _check_layers(workload, new)
    for replica, placement in enumerate(new.placements):
        known = replica < len(old.placements)
        giver = old.placements[replica] if known else old.placement
        for layer, target in enumerate(placement.domain_of_layer):
            if all(held.domain_of_layer[layer] != target for held in old.placements):
                num_bytes = workload.state_bytes * workload.num_parameters[layer]
                yield LayerMove(layer, giver.domain_of_layer[layer], target, num_bytes)


def moved_bytes(workload: Workload, old: Plan, new: Plan) -> dict[tuple[int, int], float]:
    """Model state that a change of plan sends, by source and target domain. [bytes]

    Each byte counts once, however many links its route has.

    Raises
    ------
    ValueError
        If one of the plans places another number of layers than there are.
    """
    sent: dict[tuple[int, int], float] = {}
    for move in layer_moves(workload, old, new):
        ends = (move.source, move.target)
        sent[ends] = sent.get(ends, 0.0) + move.num_bytes
    return sent


def migration_s(
    topology: Topology,
    workload: Workload,
    old: Plan,
    new: Plan,
    *,
    restart_s: float = RESTART_S,
    pays_bytes: bool = True,
    corrections: Corrections = NO_CORRECTIONS,
) -> float:
    """Time for which the training stands still to change its plan. [s]

    All layers leave at time 0 of the topology, a message each, and share the links with each other
    by the rules of the world's transport. The restart follows when the last one has arrived.

    Parameters
    ----------
    restart_s
        Time that any change takes on top; equal plans take none.
    pays_bytes
        False where the model state is in all domains already, so that only the restart is paid.

    Raises
    ------
    ValueError
        If a plan does not match the workload or the topology, or ``restart_s`` is negative.
    UnreachableError
        If no path of links joins two domains between which a layer has to move.
    StarvationError
        If a layer waits for a link that is down for ever.
    """
    require_non_negative("migration", "restart_s", restart_s)
    for plan in (old, new):
        plan.check_against(topology, workload)
    if old == new:
        return 0.0
    if not pays_bytes:
        return restart_s
    return _transfer_s(topology, list(layer_moves(workload, old, new)), corrections) + restart_s


def send_moves(
    clock: Clock, network: Carrier, topology: Topology, moves: Sequence[LayerMove]
) -> list[Message]:
    """Hand layers over to a network now, a message each, in order; returns what happens at last."""
    messages = [Message(clock, number, move.layer) for number, move in enumerate(moves)]
    for message, move in zip(messages, moves, strict=True):
        parcel = Parcel(
            num_bytes=move.num_bytes,
            route=topology.route(move.source, move.target),
            stage=move.source,
            kind="M",
            sender=move.source,
        )
        network.way(parcel)(message, clock.now)
    return messages


def _transfer_s(topology: Topology, moves: Sequence[LayerMove], corrections: Corrections) -> float:
    """Time until the last of some layers that all leave at time 0 has arrived. [s]"""
    clock = Clock()
    network = Network(clock, topology, corrections)
    messages = send_moves(clock, network, topology, moves)
    clock.run_out()
    assert all(message.processed for message in messages)
    return max((transfer.arrival_s for transfer in network.transfers()), default=0.0)


def _check_layers(workload: Workload, plan: Plan) -> None:
    for placement in plan.placements:
        if len(placement.domain_of_layer) != workload.num_layers:
            raise ValueError(
                f"migration: each placement must hold the {workload.num_layers} layers of "
                f"{workload.name}, got {len(placement.domain_of_layer)}"
            )
