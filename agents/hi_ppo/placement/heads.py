"""Policy heads: warm-up depth, layer shares, value."""

import math

import torch
from torch import Tensor, nn

from agents.decision.depths import DEPTHS
from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.encoder import Encoded, Networks
from agents.hi_ppo.placement.placement_checkpoint import NUM_ORDER_FACTS
from agents.hi_ppo.placement.pointer import DomainOrders
from agents.ppo.first_weights import FirstWeights, draw_linear

MOST_TILT = 0.3
"""Most by which the logarithm of a stage's share departs from what is even in time."""

_FIRST_GAIN, _FIRST_STD = 0.01, 0.05


class Heads(nn.Module):
    """Depth and shares of given orders, and the value of a network."""

    def __init__(self, architecture: PlacementArchitecture, generator: FirstWeights) -> None:
        super().__init__()
        width = architecture.width
        self.summed = draw_linear(2 * width + NUM_ORDER_FACTS, width, generator)
        self.depth = draw_linear(width, len(DEPTHS), generator, _FIRST_GAIN)
        self.stage = draw_linear(4 * width + 2, width, generator)
        self.tilt = draw_linear(width, 1, generator, _FIRST_GAIN)
        self.log_std = nn.Parameter(torch.tensor(math.log(_FIRST_STD)))
        self.valued = draw_linear(width, width, generator)
        self.value = draw_linear(width, 1, generator, _FIRST_GAIN)

    def values(self, encoded: Encoded) -> Tensor:
        """Expected reward of each network, (B,)."""
        values: Tensor = self.value(torch.relu(self.valued(encoded.whole))).squeeze(-1)
        return values

    def depth_logits(self, networks: Networks, encoded: Encoded, orders: DomainOrders) -> Tensor:
        """Logits of the schedules of `DEPTHS` for each order, (B, N, D)."""
        most = orders.domains.shape[-1]
        is_taken = torch.arange(most) < orders.sizes.unsqueeze(-1)
        nodes = _gathered(encoded.nodes, orders.domains) * is_taken.unsqueeze(-1)
        sizes = orders.sizes.unsqueeze(-1)
        rows = torch.arange(len(nodes))[:, None, None]
        wires = networks.log_ratio[rows, orders.domains[:, :, :-1], orders.domains[:, :, 1:]]
        wires = wires * is_taken[:, :, 1:]
        speed = networks.speed_share[rows, orders.domains] * is_taken
        num_borders = (sizes - 1).clamp(min=1)
        facts = [
            sizes / networks.num_domains[:, None, None],
            sizes.to(wires.dtype).log(),
            wires.sum(dim=-1, keepdim=True) / num_borders,
            wires.amax(dim=-1, keepdim=True) if most > 1 else torch.zeros_like(sizes),
            speed.sum(dim=-1, keepdim=True),
        ]
        whole = encoded.whole.unsqueeze(1).expand(-1, nodes.shape[1], -1)
        mixed = self.summed(torch.cat([nodes.sum(dim=2) / sizes, whole, *facts], dim=-1))
        logits: Tensor = self.depth(torch.relu(mixed))
        return logits

    def tilts(self, encoded: Encoded, orders: DomainOrders) -> Tensor:
        """Mean logarithms of how much more than even stages get, (B, N, K); 0 behind the last."""
        most = orders.domains.shape[-1]
        steps = torch.arange(most)
        is_taken = (steps < orders.sizes.unsqueeze(-1)).unsqueeze(-1)
        nodes = _gathered(encoded.nodes, orders.domains) * is_taken
        before = nn.functional.pad(nodes[:, :, :-1], (0, 0, 1, 0))
        behind = nn.functional.pad(nodes[:, :, 1:], (0, 0, 0, 1))
        whole = encoded.whole[:, None, None].expand_as(nodes)
        place = steps / (orders.sizes.unsqueeze(-1) - 1).clamp(min=1)
        left = 1.0 / orders.sizes.unsqueeze(-1).expand_as(place)
        facts = torch.stack([place, left], dim=-1)
        mixed = self.stage(torch.cat([before, nodes, behind, whole, facts], dim=-1))
        tilts = MOST_TILT * torch.tanh(self.tilt(torch.relu(mixed)))
        return (tilts * is_taken).squeeze(-1)

    def tilt_log_probs(self, means: Tensor, tilts: Tensor, orders: DomainOrders) -> Tensor:
        """Logarithms of the densities of drawn tilts (B, N, K), constants left out, (B, N)."""
        is_taken = torch.arange(tilts.shape[-1]) < orders.sizes.unsqueeze(-1)
        scaled = (tilts - means) / self.log_std.exp()
        return ((-0.5 * scaled**2 - self.log_std) * is_taken).sum(dim=-1)


def _gathered(nodes: Tensor, domains: Tensor) -> Tensor:
    rows = torch.arange(len(nodes))[:, None, None]
    return nodes[rows, domains]
