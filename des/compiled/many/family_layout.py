"""Memory layout of plans of any family: pipelines, replicas, and what they exchange.

N plans of Q pipelines in all, K domains, L layers, X kinds of exchanges.
"""

from typing import NamedTuple

from des.compiled.many.layout import Flags, Real, Whole
from des.compiled.many.steady import Plans

BEHIND_BACKWARD, AFTER_PIPELINE, AFTER_STEP, ALONE = range(4)
"""Starts of exchanges: as the last backward pass makes the values; when the replica's pipeline is
done; when all replicas have ended the step, updates included; at time 0 on idle links."""


class FamilyRows(NamedTuple):
    """Plans as their pipelines, one stage per domain, which share no domain.

    Pipelines of plan ``n`` are rows of ``pipelines`` from ``first[n]`` to that of the next,
    (N + 1,); ``shares`` (Q,) are their microbatches. ``exchange`` (N,) is a kind of exchange, read
    where a plan has several pipelines, and ``script`` (N,) the steps of its members; ``message``
    (N,) a size of activations.
    """

    first: Whole
    exchange: Whole
    script: Whole
    message: Whole
    pipelines: Plans
    shares: Whole


class ExchangeKinds(NamedTuple):
    """Exchanges of one step: layers that are due, their values, and when they start.

    ``is_due`` (X, L); ``bits_per_value`` and ``most_bytes`` of a bucket (``inf``: no limit), (X,);
    ``start`` (X,), one of the four above. Where ``gathered_bits`` (X,) of a value are not 0, the
    optimiser is sharded: gradients are scattered, and weights of as many bits gathered in the same
    steps when all replicas have updated their parts.
    """

    is_due: Flags
    bits_per_value: Real
    most_bytes: Real
    start: Whole
    gathered_bits: Real


class ExchangeScripts(NamedTuple):
    """Steps of the members of exchanges between domains, see `des.plan.exchange_steps`.

    Script ``s`` has ``num_messages[s]`` messages of one of ``num_parts[s]`` parts of a bucket.
    ``first_member[s]`` is where its members begin, ``first_step`` of a member where its steps do:
    ``message``, and ``receiver``, the member that it is sent to, or -1 where it is waited for. From
    ``first_message[s]`` on, ``waits`` holds the member that waits for a message; from
    ``first_way[s]`` to that of the next script, ``ways`` the senders and receivers that need links.
    """

    num_parts: Whole
    num_messages: Whole
    first_member: Whole
    first_step: Whole
    message: Whole
    receiver: Whole
    first_message: Whole
    waits: Whole
    first_way: Whole
    ways: Whole


class RingJob(NamedTuple):
    """Figures of gradients and links: from the domain of a row to that of a column, (K, K).

    ``num_parameters`` (L,); ``parameters_before`` and ``backward_before`` [FLOP] of all layers
    before one, (L + 1,). A goodput of 0 bytes/s means no direct link. ``update_s`` (K, 2) is the
    time to update a parameter, and the overhead of a step.
    """

    num_parameters: Real
    parameters_before: Real
    backward_before: Real
    gradient_bytes: float
    goodput_bytes_per_s: Real
    latency_s: Real
    overhead_s: float
    update_s: Real


class PassTimes(NamedTuple):
    """Last pass of each stage of the pipelines, which completes its gradients: both (Q, S). [s]"""

    start_s: Real
    end_s: Real


class RingRoom(NamedTuple):
    """Room for the exchanges of one plan: buckets, members, messages, links and events.

    Members are numbered bucket by bucket, replicas in order; messages bucket by bucket, by script.
    """

    stage_of: Whole
    first_layer: Whole
    parameters: Real
    part_bytes: Real
    member_stage: Whole
    step: Whole
    awaited: Whole
    ready_s: Real
    arrival_s: Real
    free_s: Real
    last_arrival_s: Real
    partials: Real
    event_s: Real
    event_rank: Whole


class ReplicaExchange(NamedTuple):
    """The exchange of one plan: its kind and script, and its pipelines, from the first on."""

    rows: FamilyRows
    kinds: ExchangeKinds
    scripts: ExchangeScripts
    job: RingJob
    passes: PassTimes
    room: RingRoom
    kind: int
    script: int
    first: int
    num_replicas: int
