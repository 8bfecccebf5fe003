"""Wires that GPUs of a binding have in common, and the domain as `des` would see it with them.

`des` reckons with one inner network and one kind of network card per domain; so it gets those of
the GPUs that exchange data.
"""

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from agents.hi_ppo.local.case import DomainCase, LocalCase, ServersCase
from des import Domain, Nodes


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
    without a rest. The inner network is that of their slowest tensor group, and cards are those of
    the server where they are shared worst.
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
