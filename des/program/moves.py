"""Model state that a change of plan sends between domains."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from des.costs.message_times import quickest_message_s
from des.costs.outer_state import INNER_MOMENTS_BYTES, OUTER_STATE_BYTES, has_outer_state
from des.job.transformer import OPTIMISER_BYTES
from des.job.workload import Workload
from des.plan.corrections import NO_CORRECTIONS, Corrections
from des.plan.plan import Plan
from des.program.actions import NONE, SEND, WAIT_SENT
from des.program.draft import ProgramDraft, share_lists
from des.program.program import MessageFlow, Program, Worker
from des.world.topology import Topology, UnreachableError


class LayerMove(NamedTuple):
    """The model state of one layer that goes from one domain to another, both by position."""

    layer: int
    source: int
    target: int
    num_bytes: float


class MissingState(NamedTuple):
    """State of one layer that a change of plan needs in a domain, and the domains that have it."""

    layer: int
    target: int
    num_bytes: float
    holders: tuple[int, ...]


def missing_states(workload: Workload, old: Plan, new: Plan) -> Iterator[MissingState]:
    """Yield what domains lack for a change of plan, by new replica and layer; nothing twice.

    A domain that holds a layer for whichever replica has its model state, all
    `Workload.state_bytes` of its parameters: how its GPUs share them is a matter of the network
    inside, which is taken to cost no time. So replicas become one pipeline for nothing.

    The outer optimiser's state of replicas that exchange rarely is 8 bytes a parameter more
    (`des.costs.outer_state`), the same in all domains. It goes with a layer to a domain that lacks
    it where both plans have such a state. Where it begins, every domain makes it on the spot: no
    momentum, and a copy of the parameters. Where replicas begin to exchange after every step, they
    continue from that copy, which all have, and from the moments of one inner optimiser: those of
    the first holder that stays, which every other holder gets.

    Where replicas share the optimiser's state, the one in place r of R has part r of R equal parts
    of every layer. A domain gets what it lacks of the parts that it is to have, from each that has
    some of them; what it has too much of costs nothing.

    Raises
    ------
    ValueError
        If one of the plans places another number of layers than there are.
    """
    _check_layers(workload, old)
    _check_layers(workload, new)
    base = float(workload.state_bytes - OPTIMISER_BYTES)
    if has_outer_state(old) and has_outer_state(new):
        base += OUTER_STATE_BYTES
    holders_of = _holders(old)
    sent: set[tuple[int, int]] = set()
    for layer, target, owners in _needed_parts(old, new, holders_of):
        parameters, holders = workload.num_parameters[layer], holders_of[layer]
        lacks_weights = target not in holders and (layer, target) not in sent
        sent.add((layer, target))
        if lacks_weights and old.optimiser_shards > 1:
            yield MissingState(layer, target, base * parameters, holders)
            lacks_weights = False
        agrees = target in holders and has_outer_state(old)
        whole = INNER_MOMENTS_BYTES if agrees else OPTIMISER_BYTES
        for owner in owners:
            if target not in owner.holders:
                per_parameter = whole * owner.fraction + (base if lacks_weights else 0.0)
                yield MissingState(layer, target, per_parameter * parameters, owner.holders)


class _Owner(NamedTuple):
    """Part of a layer's optimiser state that a change needs, and the domains that have it."""

    fraction: float
    holders: tuple[int, ...]


def _needed_parts(
    old: Plan, new: Plan, holders_of: Sequence[tuple[int, ...]]
) -> Iterator[tuple[int, int, list[_Owner]]]:
    """Yield layers, domains that need their optimiser's state and who has it, by new replica.

    The state of a layer is as many equal pieces as both plans have shards, multiplied.
    """
    agreed = _agreed(old, new, holders_of)
    count = old.optimiser_shards * new.optimiser_shards
    seen: set[tuple[int, int, range]] = set()
    for replica, placement in enumerate(new.placements):
        pieces = _pieces_of(new, replica, count)
        for layer, target in enumerate(placement.domain_of_layer):
            if (layer, target, pieces) in seen:
                continue
            seen.add((layer, target, pieces))
            if old.optimiser_shards == 1:
                yield layer, target, [_Owner(len(pieces) / count, agreed[layer])]
            else:
                yield layer, target, list(_owners(old, layer, pieces, count))


def _owners(old: Plan, layer: int, pieces: range, count: int) -> Iterator[_Owner]:
    """Yield the replicas among which pieces of a layer's state are."""
    for replica, placement in enumerate(old.placements):
        own = _pieces_of(old, replica, count)
        common = range(max(own.start, pieces.start), min(own.stop, pieces.stop))
        if common:
            yield _Owner(len(common) / count, (placement.domain_of_layer[layer],))


def _pieces_of(plan: Plan, replica: int, count: int) -> range:
    """Pieces of every layer's optimiser state that a replica has, all of them unless sharded."""
    shards = plan.optimiser_shards
    if shards == 1:
        return range(count)
    return range(replica * count // shards, (replica + 1) * count // shards)


def _agreed(
    old: Plan, new: Plan, holders_of: Sequence[tuple[int, ...]]
) -> Sequence[tuple[int, ...]]:
    """Holders of each layer's moments: one of them where replicas begin to agree on these."""
    if not has_outer_state(old) or not new.replicas or has_outer_state(new):
        return holders_of
    found = []
    for holders, others in zip(holders_of, _holders(new), strict=True):
        stay = (one for one in holders if one in others)
        found.append((next(stay, holders[0]),))
    return found


def layer_moves(
    topology: Topology,
    workload: Workload,
    old: Plan,
    new: Plan,
    corrections: Corrections = NO_CORRECTIONS,
) -> Iterator[LayerMove]:
    """Yield the moves that a change of plan needs, in the order of `missing_states`.

    Of several holders a layer comes from the one from which it is there first: behind the layers
    chosen to come that way before, over links that are idle else and, where they move, at their
    best. So a domain that needs many layers gets parts of them from all holders at once.
    """
    free_s: dict[tuple[int, int], float] = {}
    states = list(missing_states(workload, old, new))
    has_choice = any(len(state.holders) > 1 for state in states)
    for layer, target, num_bytes, holders in states:
        best_s, source, turn_s = math.inf, holders[0], 0.0
        for holder in holders if has_choice else ():
            try:
                least_s, own_s = quickest_message_s(
                    topology, holder, target, num_bytes, corrections
                )
            except UnreachableError:
                continue
            arrival_s = free_s.get((holder, target), 0.0) + least_s
            if arrival_s < best_s:
                best_s, source, turn_s = arrival_s, holder, own_s
        free_s[source, target] = free_s.get((source, target), 0.0) + turn_s
        yield LayerMove(layer, source, target, num_bytes)


def moved_bytes(workload: Workload, old: Plan, new: Plan) -> dict[int, float]:
    """State that a change of plan sends, by the domain that receives it. [bytes]

    Each byte counts once, however many links its route has.

    Raises
    ------
    ValueError
        If one of the plans places another number of layers than there are.
    """
    received: dict[int, float] = {}
    for state in missing_states(workload, old, new):
        received[state.target] = received.get(state.target, 0.0) + state.num_bytes
    return received


def _holders(plan: Plan) -> list[tuple[int, ...]]:
    """Domains that hold each layer, those of earlier replicas first."""
    layers = zip(*(one.domain_of_layer for one in plan.placements), strict=True)
    return [tuple(dict.fromkeys(domains)) for domains in layers]


def lower_moves(topology: Topology, moves: Sequence[LayerMove]) -> Program:
    """Turn moves into a program: they leave at time 0, in this order, a message each.

    Raises
    ------
    UnreachableError
        If no path of links joins two domains between which a layer has to move.
    """
    draft = ProgramDraft(topology)
    for layer, source, target, num_bytes in moves:
        channel = draft.over_links(source, target)
        flow = MessageFlow(channel, 1, source, num_bytes, stage=source, kind="M", label=layer)
        draft.flows.append(flow)
    ports = range(len(moves))
    (operations,) = share_lists([[(one, port, 0) for one in (SEND, WAIT_SENT) for port in ports]])
    worker = Worker(draft.list_number(operations), NONE, (), tuple(ports))
    return draft.program(workers=(worker,), num_devices=topology.num_domains)


def _check_layers(workload: Workload, plan: Plan) -> None:
    for placement in plan.placements:
        if len(placement.domain_of_layer) != workload.num_layers:
            raise ValueError(
                f"migration: each placement must hold the {workload.num_layers} layers of "
                f"{workload.name}, got {len(placement.domain_of_layer)}"
            )
