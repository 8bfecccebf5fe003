"""Descriptions of domains that know of each other: messages along the links of a network."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.features import EDGE_SIZE, GLOBAL_SIZE, NODE_SIZE, Features
from agents.ppo.first_weights import FirstWeights, draw_linear


class Networks(NamedTuple):
    """B situations side by side, those of fewer than K domains filled up with absent ones.

    ``nodes`` (B, K, .), ``edges`` (B, K, K, .) and ``whole`` (B, .) as in `Features`; ``present``
    (B, K) and ``can_follow`` (B, K, K) are flags, the others facts on what may be chosen.
    """

    nodes: Tensor
    edges: Tensor
    whole: Tensor
    present: Tensor
    can_follow: Tensor
    speed_share: Tensor
    memory_share: Tensor
    log_ratio: Tensor

    @property
    def num_domains(self) -> Tensor:
        """Domains that are present, (B,)."""
        return self.present.sum(dim=1)


class Encoded(NamedTuple):
    """Descriptions of domains (B, K, W), of pairs (B, K, K, .) and of the network (B, W)."""

    nodes: Tensor
    edges: Tensor
    whole: Tensor


def networks_of(situations: Sequence[Features]) -> Networks:
    """Put situations side by side.

    Raises
    ------
    ValueError
        If there is none.
    """
    if not situations:
        raise ValueError("networks: situations must hold at least one, got none")
    most = max(len(one.nodes) for one in situations)
    count = len(situations)
    nodes = torch.zeros(count, most, NODE_SIZE)
    edges = torch.zeros(count, most, most, EDGE_SIZE)
    present = torch.zeros(count, most, dtype=torch.bool)
    can_follow = torch.zeros(count, most, most, dtype=torch.bool)
    speed_share, memory_share = torch.zeros(2, count, most)
    log_ratio = torch.zeros(count, most, most)
    for row, one in enumerate(situations):
        size = len(one.nodes)
        nodes[row, :size] = torch.from_numpy(one.nodes)
        edges[row, :size, :size] = torch.from_numpy(one.edges)
        present[row, :size] = True
        can_follow[row, :size, :size] = torch.from_numpy(one.facts.can_follow)
        speed_share[row, :size] = torch.from_numpy(one.facts.speed_share)
        memory_share[row, :size] = torch.from_numpy(one.facts.memory_share)
        log_ratio[row, :size, :size] = torch.from_numpy(one.facts.log_ratio)
    whole = torch.stack([torch.from_numpy(one.whole) for one in situations])
    return Networks(nodes, edges, whole, present, can_follow, speed_share, memory_share, log_ratio)


class Round(nn.Module):
    """One round: every domain hears from those it has links with, the mean and the most of it."""

    def __init__(self, architecture: PlacementArchitecture, generator: FirstWeights) -> None:
        super().__init__()
        width = architecture.width
        self.sent = draw_linear(width, 2 * width, generator)
        self.by_edge = draw_linear(architecture.edge_width, width, generator)
        self.mixed = draw_linear(4 * width, width, generator)
        self.out = draw_linear(width, width, generator, 0.5)
        self.norm = nn.LayerNorm(width)

    def forward(self, encoded: Encoded, heard: Tensor) -> Encoded:
        """Descriptions after the round; ``heard`` (B, K, K, 1) weighs who hears whom."""
        here, there = self.sent(encoded.nodes).chunk(2, dim=-1)
        messages = here.unsqueeze(2) + there.unsqueeze(1) + self.by_edge(encoded.edges)
        messages = torch.relu(messages) * heard
        mean = messages.sum(dim=2) / heard.sum(dim=2).clamp(min=1.0)
        whole = encoded.whole.unsqueeze(1).expand_as(encoded.nodes)
        gathered = torch.cat([encoded.nodes, mean, messages.amax(dim=2), whole], dim=-1)
        nodes = self.norm(encoded.nodes + self.out(torch.relu(self.mixed(gathered))))
        return encoded._replace(nodes=nodes)


class Encoder(nn.Module):
    """Describes domains, pairs and networks; renumbering the domains renumbers that and no more."""

    def __init__(self, architecture: PlacementArchitecture, generator: FirstWeights) -> None:
        super().__init__()
        width, edge_width = architecture.width, architecture.edge_width
        self.node = draw_linear(NODE_SIZE + GLOBAL_SIZE, width, generator)
        self.edge = draw_linear(EDGE_SIZE, edge_width, generator)
        self.edge_out = draw_linear(edge_width, edge_width, generator)
        self.whole = draw_linear(GLOBAL_SIZE, width, generator)
        self.rounds = nn.ModuleList(
            Round(architecture, generator) for _ in range(architecture.num_rounds)
        )
        self.gathered = draw_linear(3 * width, width, generator)

    def forward(self, networks: Networks) -> Encoded:
        """Descriptions of B networks."""
        present = networks.present.unsqueeze(-1)
        whole = networks.whole.unsqueeze(1).expand(-1, networks.nodes.shape[1], -1)
        nodes = torch.relu(self.node(torch.cat([networks.nodes, whole], dim=-1))) * present
        edges = torch.relu(self.edge_out(torch.relu(self.edge(networks.edges))))
        encoded = Encoded(nodes, edges, torch.relu(self.whole(networks.whole)))
        heard = networks.can_follow.unsqueeze(-1).to(nodes.dtype)
        for one in self.rounds:
            encoded = one(encoded, heard)
        nodes = encoded.nodes * present
        mean = nodes.sum(dim=1) / networks.num_domains.unsqueeze(-1)
        most = nodes.masked_fill(~present, -torch.inf).amax(dim=1)
        together = torch.relu(self.gathered(torch.cat([mean, most, encoded.whole], dim=-1)))
        return Encoded(nodes, encoded.edges, together)
