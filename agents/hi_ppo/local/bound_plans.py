"""Options bound to GPUs by compiled code: the quickest of some, and the best local plan.

Also the wires that GPUs of a binding have in common, and the domain as `des` would see it with
them: it reckons with one inner network and one kind of network card per domain, so it gets those of
the GPUs that exchange data.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from agents.devices.best_binding import best_binding
from agents.devices.binding_search import Groups, Quickest, quick_binding, quickest_bindings
from agents.devices.binding_times import (
    BindingWorks,
    ServerGpus,
    iteration_s,
    work_at,
)
from agents.hi_ppo.local.case import MOST_LOCAL_GPUS, DomainCase, LocalCase, ServersCase
from agents.hi_ppo.local.options import LocalOption, Options, options_of, pass_steps
from des import Corrections, Domain, Nodes
from des.base.node_arithmetic import AmountT, cards_bytes_per_s, ring_over_nodes_s
from des.costs.stage_times import TENSOR_ALL_REDUCES_PER_PASS
from des.devices.rings import Whole, Wires


class Joint(NamedTuple):
    """Wires of GPUs that exchange data: those of less bandwidth, then of more latency, are less.

    ``card_share`` is the part that GPUs which send to another server get of an even share of its
    cards.
    """

    bandwidth_bytes_per_s: float
    negative_latency_s: float
    card_share: float = 1.0


def joint_of(case: DomainCase, group: np.ndarray) -> Joint:
    """Wires of the best ring of some GPUs, of several servers those of the slowest in a server.

    A GPU alone has the network of the domain, which it does not use; so have GPUs that are not
    known one by one, and those of several servers that the local agent does not decide on. Of
    servers that a group spans all GPUs send.
    """
    domain = case.domain
    own = Joint(domain.intra_bandwidth_bytes_per_s, -domain.intra_latency_s)
    if len(group) == 1 or not isinstance(case, LocalCase | ServersCase):
        return own
    gpus = case.gpus if isinstance(case, LocalCase) else case.server
    sets = _sets_of(group, gpus.num_gpus)
    if len(sets) > 1 and not isinstance(case, LocalCase):
        return own
    bandwidth, latency_s = gpus.wires.ring_bandwidth_bytes_per_s, gpus.wires.ring_latency_s
    rings = [
        Joint(float(bandwidth[each]), -float(latency_s[each]))
        for each in sets
        if each.bit_count() > 1
    ]
    joint = min(rings, default=own)
    if len(sets) == 1:
        return joint
    return joint._replace(card_share=_card_share(domain, [2**gpus.num_gpus - 1]))


def border_joint(case: LocalCase, before: np.ndarray, behind: np.ndarray) -> Joint | None:
    """Wires of a border between devices in a row on different servers; None inside a server.

    ``before`` and ``behind`` (data, tensor) are the GPUs of the two devices, which fill servers
    without remainder. The inner network is that of their slowest tensor group, and cards are those
    of the server where they are shared worst.
    """
    per_server = case.gpus.num_gpus
    if before.flat[-1] // per_server == behind.flat[0] // per_server:
        return None
    slowest = min(joint_of(case, group) for group in (*before, *behind))
    senders = [each for device in (before, behind) for each in _sets_of(device.ravel(), per_server)]
    return slowest._replace(card_share=_card_share(case.domain, senders))


@lru_cache(maxsize=4096)
def domain_with(domain: Domain, joint: Joint) -> Domain:
    """Return the domain with an inner network and cards."""
    nodes = domain.nodes
    if nodes is not None and joint.card_share != 1.0:
        bandwidth = nodes.nic_bandwidth_bytes_per_s * joint.card_share
        nodes = replace(nodes, nic_bandwidth_bytes_per_s=bandwidth)
    return replace(
        domain,
        intra_bandwidth_bytes_per_s=joint.bandwidth_bytes_per_s,
        intra_latency_s=-joint.negative_latency_s,
        nodes=nodes,
    )


def card_shares(nodes: Nodes) -> np.ndarray:
    """Parts that sets of GPUs of a node get of an even share of its cards (2**n,).

    All 1 where cards are not known one by one, or not all of the node's.
    """
    server = nodes.server
    if server is None or len(server.near_nics) != nodes.nics_per_node:
        return np.ones(1 << nodes.gpus_per_node)
    return server.nic_shares


def _card_share(domain: Domain, senders: list[int]) -> float:
    """Share of cards where some sets of GPUs have the least."""
    assert domain.nodes is not None
    return float(card_shares(domain.nodes)[senders].min())


def _sets_of(group: np.ndarray, per_server: int) -> list[int]:
    """Sets of GPUs of a group, one a server, with a bit for the place of each in its server."""
    found: dict[int, int] = {}
    for gpu in group.tolist():
        number, place = divmod(gpu, per_server)
        found[number] = found.get(number, 0) | 1 << place
    return list(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPlan:
    """An option bound to GPUs, with its time.

    ``binding`` has a GPU for each place, see `agents.devices.binding_times`.
    """

    option: LocalOption
    binding: tuple[int, ...]
    seconds_per_sequence: float


def works_of(case: LocalCase, options: Options) -> BindingWorks:
    """Return all options of a case in numbers for the compiled code.

    The sums in tensor groups over several servers are those of any binding: they are in the work.
    """
    rows, gpus, compute_s = options.rows, server_gpus_of(case), options.compute_s
    steps = 2.0 * pass_steps(rows.tensor[:, None], options.num_layers)
    is_wide = (rows.tensor > gpus.per_server)[:, None]
    if is_wide.any():
        sums_s = wide_sums_s(gpus, rows.tensor, options.message_bytes)[:, None]
        compute_s = np.where(is_wide, compute_s + 2 * sums_s * options.num_layers, compute_s)
        steps = np.where(is_wide, 0.0, steps)
    return BindingWorks(
        tensor=rows.tensor,
        data=rows.data,
        pipeline=rows.pipeline,
        compute_s=compute_s,
        tensor_steps=steps,
        data_bytes=options.gradient_bytes / rows.data[:, None],
        message_bytes=options.message_bytes,
        fill=options.num_microbatches - 1 + case.stages_before + case.stages_behind,
    )


def wide_sums_s(gpus: ServerGpus, tensor: AmountT, message_bytes: AmountT) -> AmountT:
    """Sums of a layer in one pass, in tensor groups over whole servers. [s]

    By `des.costs.node_collectives.group_ring_all_reduce_s`, with the ring of all GPUs of a server.
    """
    out = cards_bytes_per_s(gpus.num_cards, gpus.card_bytes_per_s, gpus.per_server, 1)
    pace = min(float(gpus.wires.ring_bandwidth_bytes_per_s[-1]), out * gpus.card_shares[-1])
    latencies_s = float(gpus.wires.ring_latency_s[-1]), gpus.card_latency_s
    num_servers = tensor // gpus.per_server
    half_s = ring_over_nodes_s(message_bytes, tensor, num_servers, latencies_s, pace)
    return 2 * TENSOR_ALL_REDUCES_PER_PASS * half_s


def server_gpus_of(case: LocalCase) -> ServerGpus:
    """Return the GPUs of a case's servers, their wires and network cards, with calibrated figures.

    Cards that a server does not tell one by one, or not all of the domain's, are shared evenly. Of
    GPUs without ``nodes`` no message leaves the server.
    """
    gpus, nodes, factors = case.gpus, case.domain.nodes, case.corrections
    free, wires = np.array(gpus.free), _correct(gpus.wires, case.corrections)
    if nodes is None:
        return ServerGpus(free, wires, gpus.num_gpus, 1, 1.0, 0.0, _even_shares(gpus.num_gpus))
    return ServerGpus(
        free=free,
        wires=wires,
        per_server=nodes.gpus_per_node,
        num_cards=nodes.nics_per_node,
        card_bytes_per_s=nodes.nic_bandwidth_bytes_per_s * factors.intra_bandwidth_factor,
        card_latency_s=nodes.nic_latency_s * factors.intra_latency_factor,
        card_shares=card_shares(nodes),
    )


@lru_cache(maxsize=MOST_LOCAL_GPUS)
def _even_shares(num_gpus: int) -> np.ndarray:
    return np.ones(1 << num_gpus)


def _correct(wires: Wires, corrections: Corrections) -> Wires:
    bandwidth, latency = corrections.intra_bandwidth_factor, corrections.intra_latency_factor
    if bandwidth == latency == 1.0:
        return wires
    return Wires(
        wires.bandwidth_bytes_per_s * bandwidth,
        wires.latency_s * latency,
        wires.ring_bandwidth_bytes_per_s * bandwidth,
        wires.ring_latency_s * latency,
    )


def quickly_bound(case: LocalCase, options: Options, chosen: Sequence[int]) -> LocalPlan:
    """Bind some of the options by a quick search and return the quickest, the first of equals."""
    (plan,) = each_quickly_bound(case, options, works_of(case, options), [chosen])
    return plan


def each_quickly_bound(
    case: LocalCase, options: Options, works: BindingWorks, chosen: Sequence[Sequence[int]]
) -> list[LocalPlan]:
    """Return the `quickly_bound` plan of each of several groups of options; works: `works_of`."""
    found = Quickest(
        row=np.empty(len(chosen), dtype=np.int64),
        time_s=np.empty(len(chosen)),
        binding=np.empty((len(chosen), len(case.free_gpus)), dtype=np.int64),
    )
    ends = np.cumsum([len(each) for each in chosen])
    rows = np.concatenate([np.asarray(each, dtype=np.int64) for each in chosen])
    quickest_bindings(works, Groups(rows, ends), server_gpus_of(case), found)
    return [
        _plan(case, options.rows.options[row], binding, time_s)
        for row, time_s, binding in zip(
            found.row.tolist(), found.time_s.tolist(), found.binding, strict=True
        )
    ]


def in_order(case: LocalCase, options: Options, row: int) -> LocalPlan:
    """Bind an option to GPUs in the order of their numbers."""
    gpus, work = server_gpus_of(case), work_at(works_of(case, options), row)
    binding = np.resize(gpus.free, len(case.free_gpus))
    return _plan(case, options.rows.options[row], binding, iteration_s(work, gpus, binding))


def quick_times_s(case: LocalCase, options: Options, chosen: Iterable[int]) -> np.ndarray:
    """Time of an iteration of some of the options, each bound by a quick search (N,). [s]"""
    works, gpus = works_of(case, options), server_gpus_of(case)
    binding = np.empty(len(case.free_gpus), dtype=np.int64)
    return np.array([quick_binding(work_at(works, row), gpus, binding) for row in chosen])


def exhaustive(case: LocalCase, options: Options | None = None) -> LocalPlan:
    """Return the best of all options, each with its `best_binding`: the optimal local plan.

    On several servers of many GPUs that is the best known.

    Raises
    ------
    InfeasiblePlacementError
        If none fits into memory.
    """
    options = options_of(case) if options is None else options
    works, gpus = works_of(case, options), server_gpus_of(case)
    quick_s = quick_times_s(case, options, range(len(options)))
    best = int(np.argmin(quick_s))
    plan, binding = quickly_bound(case, options, [best]), np.empty(len(case.free_gpus), np.int64)
    best_s = quick_s[best]
    for row in np.argsort(quick_s, kind="stable").tolist():
        found_s = best_binding(work_at(works, row), gpus, best_s, binding)
        if found_s < best_s:
            best_s, plan = found_s, _plan(case, options.rows.options[row], binding, found_s)
    return plan


def _plan(case: LocalCase, option: LocalOption, binding: Whole, iteration_s: float) -> LocalPlan:
    places, size = np.arange(option.parallelism.num_gpus), case.gpus.num_gpus
    gpus = binding[: len(places)] + places // size * size
    return LocalPlan(
        option=option,
        binding=tuple(gpus.tolist()),
        seconds_per_sequence=iteration_s / case.job.num_sequences,
    )
