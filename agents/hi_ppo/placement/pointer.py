"""Encoder of domains that know of each other by messages, and pointer to the next domain."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.decode import NUM_FACTS, NUM_PAIRS
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


_FIRST_GAIN = 0.1


class PointerScores(NamedTuple):
    """`agents.hi_ppo.placement.decode.Scores` of B networks: (B, 3, K + 1, K + 1), (B, K, K + 1),
    (B, 5, K +
    1)."""

    pair: Tensor
    chosen: Tensor
    drift: Tensor


class DomainOrders(NamedTuple):
    """N orders for each of B networks: domains (B, N, K), as many of which count as ``sizes``."""

    domains: Tensor
    sizes: Tensor


class Pointer(nn.Module):
    """Scores what may come next by what came last, what came at all, and facts on that."""

    def __init__(self, architecture: PlacementArchitecture, generator: FirstWeights) -> None:
        super().__init__()
        width = architecture.width
        self.start, self.stop = (
            nn.Parameter(torch.randn(width, generator=generator) / math.sqrt(width))
            for _ in range(2)
        )
        self.begun, self.stopped = (
            nn.Parameter(torch.randn(architecture.edge_width, generator=generator))
            for _ in range(2)
        )
        self.ends = draw_linear(width, 2 * width, generator)
        self.by_edge = draw_linear(architecture.edge_width, width, generator)
        self.by_whole = draw_linear(width, width, generator)
        self.pair = draw_linear(width, NUM_PAIRS, generator, _FIRST_GAIN)
        self.keys = draw_linear(width, 2 * width, generator)
        self.drift = draw_linear(2 * width, NUM_FACTS, generator, _FIRST_GAIN)
        self.width = width

    def forward(self, encoded: Encoded) -> PointerScores:
        """Scores of B networks."""
        batch, most, width = encoded.nodes.shape
        whole = encoded.whole.unsqueeze(1)
        start, stop = (one.expand(batch, 1, width) + whole for one in (self.start, self.stop))
        last, behind = torch.cat([encoded.nodes, start], 1), torch.cat([encoded.nodes, stop], 1)
        here, there = (
            layer(one) for layer, one in zip(self._halves(self.ends), (last, behind), strict=True)
        )
        size = encoded.edges.shape[-1]
        down = torch.cat([encoded.edges, self.begun.expand(batch, 1, most, size)], dim=1)
        edges = torch.cat([down, self.stopped.expand(batch, most + 1, 1, size)], dim=2)
        mixed = here.unsqueeze(2) + there.unsqueeze(1) + self.by_edge(edges)
        mixed = torch.relu(mixed + self.by_whole(encoded.whole)[:, None, None])
        query, key = (
            layer(one)
            for layer, one in zip(self._halves(self.keys), (encoded.nodes, behind), strict=True)
        )
        chosen = query @ key.transpose(1, 2) / self.width
        options = torch.cat([behind, whole.expand_as(behind)], dim=-1)
        return PointerScores(
            pair=self.pair(mixed).permute(0, 3, 1, 2),
            chosen=chosen,
            drift=self.drift(options).transpose(1, 2),
        )

    def _halves(self, layer: nn.Linear) -> list["_Half"]:
        weights, biases = layer.weight.chunk(2), layer.bias.chunk(2)
        return [_Half(weight, bias) for weight, bias in zip(weights, biases, strict=True)]


class _Half(NamedTuple):
    """Half of the outputs of a layer."""

    weight: Tensor
    bias: Tensor

    def __call__(self, inputs: Tensor) -> Tensor:
        return nn.functional.linear(inputs, self.weight, self.bias)


def log_probs_of(
    networks: Networks, scores: PointerScores, orders: DomainOrders, most_stages: Tensor
) -> tuple[Tensor, Tensor]:
    """Logarithms of the probabilities of orders and mean entropies of their choices, (B, N) each.

    All steps at once; the choices are those of `agents.hi_ppo.placement.decode.decode`,
    ``most_stages`` (B,) being how long orders may be.
    """
    batch, _, most = orders.domains.shape
    steps = torch.arange(most + 1)
    is_taken = steps[:most] < orders.sizes.unsqueeze(-1)  # (B, N, K)
    one_hot = nn.functional.one_hot(orders.domains, most) * is_taken.unsqueeze(-1)
    summed = one_hot.to(scores.pair.dtype).cumsum(dim=2)
    came = nn.functional.pad(summed, (0, 0, 1, 0))  # (B, N, K + 1, K): chosen before a step
    targets = nn.functional.pad(orders.domains.masked_fill(~is_taken, most), (0, 1), value=most)
    last = nn.functional.pad(targets[:, :, :-1], (1, 0), value=most)
    num_chosen = came.sum(dim=-1)
    facts = _facts(networks, orders, came, num_chosen, is_taken)
    rows = torch.arange(batch)[:, None, None]
    pairs = scores.pair.permute(0, 2, 1, 3)[rows, last]  # (B, N, K + 1, 3, K + 1)
    by_pair = torch.stack([torch.ones_like(facts[..., 0]), facts[..., 0], facts[..., 3]], dim=-1)
    logits = (by_pair.unsqueeze(-2) @ pairs).squeeze(-2)
    mean = came / num_chosen.clamp(min=1.0).unsqueeze(-1)
    logits = logits + mean @ scores.chosen.unsqueeze(1) + facts @ scores.drift.unsqueeze(1)
    allowed = _allowed(networks, last, came, num_chosen, most_stages)
    allowed = allowed | (nn.functional.one_hot(targets, most + 1) > 0) & (
        steps > orders.sizes.unsqueeze(-1)
    ).unsqueeze(-1)
    log_p = logits.masked_fill(~allowed, -torch.inf).log_softmax(dim=-1)
    counts = steps <= orders.sizes.unsqueeze(-1)
    own = log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1) * counts
    finite = log_p.masked_fill(~allowed, 0.0)
    entropy = -(finite.exp() * finite * allowed).sum(dim=-1) * counts
    return own.sum(dim=-1), entropy.sum(dim=-1) / counts.sum(dim=-1)


def _facts(
    networks: Networks, orders: DomainOrders, came: Tensor, num_chosen: Tensor, is_taken: Tensor
) -> Tensor:
    """Facts on what was chosen before each step, (B, N, K + 1, 5)."""
    share = num_chosen / networks.num_domains[:, None, None]
    speed = (came * networks.speed_share[:, None, None]).sum(dim=-1)
    held = (came * networks.memory_share[:, None, None]).sum(dim=-1).clamp(max=1.0)
    rows = torch.arange(len(share))[:, None, None]
    wires = networks.log_ratio[rows, orders.domains[:, :, :-1], orders.domains[:, :, 1:]]
    wires = (wires * is_taken[:, :, 1:]).clamp(min=0.0)
    slowest = nn.functional.pad(wires.cummax(dim=-1).values, (2, 0))
    return torch.stack([share, speed, held, slowest, (num_chosen > 0).to(share.dtype)], dim=-1)


def _allowed(
    networks: Networks, last: Tensor, came: Tensor, num_chosen: Tensor, most_stages: Tensor
) -> Tensor:
    """Mask of the domains that may come next at each step, (B, N, K + 1, K + 1)."""
    rows = torch.arange(len(last))[:, None, None]
    start = networks.present.unsqueeze(1)
    follow = torch.cat([networks.can_follow, start], dim=1)[rows, last]
    is_open = (num_chosen < most_stages[:, None, None]).unsqueeze(-1)
    options = follow & (came == 0) & is_open
    held = (came * networks.memory_share[:, None, None]).sum(dim=-1)
    may_stop = ((num_chosen > 0) & (held >= 1.0)) | ~options.any(dim=-1)
    return torch.cat([options, may_stop.unsqueeze(-1)], dim=-1)
