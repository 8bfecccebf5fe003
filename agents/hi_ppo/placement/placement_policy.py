"""The placement policy: one set of weights for networks of 2 to 16 domains, and its own plans."""

import math
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from agents.decision.depths import DEPTHS
from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.decode import DrawnOrders, Scores, decode_orders, depth_plans
from agents.hi_ppo.placement.features import Features
from agents.hi_ppo.placement.placement_checkpoint import NUM_ORDER_FACTS, PlacementNet
from agents.hi_ppo.placement.pointer import (
    DomainOrders,
    Encoded,
    Encoder,
    Networks,
    Pointer,
    PointerScores,
    networks_of,
)
from agents.judge.look_ahead import PlanJudge
from agents.ppo.first_weights import FirstWeights, draw_linear
from agents.ppo.trained_policy import NumberedModule, tensors_of
from des import Plan
from des.base.checks import require_count
from des.compiled.many.layout import Observations
from des.compiled.many.steady import Job, Plans

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
        nodes = _gather(encoded.nodes, orders.domains) * is_taken.unsqueeze(-1)
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
        """Mean logarithms of how much more than even stages get, (B, N, K); 0 after the last."""
        most = orders.domains.shape[-1]
        steps = torch.arange(most)
        is_taken = (steps < orders.sizes.unsqueeze(-1)).unsqueeze(-1)
        nodes = _gather(encoded.nodes, orders.domains) * is_taken
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


def _gather(nodes: Tensor, domains: Tensor) -> Tensor:
    rows = torch.arange(len(nodes))[:, None, None]
    return nodes[rows, domains]


class PlacementPolicy(NumberedModule):
    """Encoder, pointer and heads; weights are drawn from ``generator`` only."""

    def __init__(self, architecture: PlacementArchitecture, generator: FirstWeights) -> None:
        super().__init__()
        self.architecture = architecture
        self.encoder = Encoder(architecture, generator)
        self.pointer = Pointer(architecture, generator)
        self.heads = Heads(architecture, generator)

    @classmethod
    def of(cls, net: PlacementNet) -> Self:
        """Make a policy that computes with the numbers of another."""
        policy = cls(net.architecture, None)
        policy.load_state_dict(tensors_of(net.numbers))
        return policy.eval()

    def forward(self, networks: Networks) -> tuple[Encoded, PointerScores]:
        """Descriptions and scores of B networks."""
        encoded: Encoded = self.encoder(networks)
        scores: PointerScores = self.pointer(encoded)
        return encoded, scores

    @torch.no_grad()
    def best_plan(self, features: Features, judge: PlanJudge, job: Job) -> tuple[Plans, int]:
        """The policy's own plan, without any look-ahead, and its row.

        The order is the likeliest choice at every step; the depth is the likeliest one under which
        the layers fit, those shared out as the policy says.

        Raises
        ------
        ValueError
            If the layers fit under no depth.
        """
        networks = networks_of([features])
        encoded, scores = self(networks)
        noise = np.zeros((1, *scores.pair.shape[-2:]), dtype=np.float32)
        drawn = decode_orders(scores_of(scores, 0), features.facts, noise, judge.most_stages)
        orders = orders_of([drawn])
        depths = self.heads.depth_logits(networks, encoded, orders)[0, 0].numpy()
        tilts = self.heads.tilts(encoded, orders)[0, 0].numpy().astype(np.float64)
        plans = depth_plans(drawn, judge.most_stages, range(len(DEPTHS)))
        weights = np.exp(tilts[: judge.most_stages])[np.newaxis].repeat(len(DEPTHS), axis=0)
        levels_s = judge.fill_by(job, plans, weights)
        fitting = np.where(np.isfinite(levels_s), depths, -np.inf)
        best = int(fitting.argmax())
        if not np.isfinite(levels_s[best]):
            raise ValueError(
                "placement policy: domains must hold the layers of the model in the order "
                f"{drawn.domains[0, : drawn.sizes[0]].tolist()} under some depth, got none"
            )
        return plans, best


def scores_of(scores: PointerScores, row: int, num_domains: int | None = None) -> Scores:
    """Scores of one network as compiled code reads them, the absent domains left out."""
    most = scores.chosen.shape[1]
    if num_domains is None or num_domains == most:
        return Scores(*(np.ascontiguousarray(one[row].numpy()) for one in scores))
    keep = [*range(num_domains), most]
    pair = scores.pair[row].numpy()[:, keep][:, :, keep]
    chosen = scores.chosen[row].numpy()[:num_domains, keep]
    drift = scores.drift[row].numpy()[:, keep]
    return Scores(*(np.ascontiguousarray(one) for one in (pair, chosen, drift)))


def draw_noise(count: int, num_domains: int, generator: torch.Generator) -> Observations:
    """Draw noise that makes samples of choices."""
    shape = (count, num_domains + 1, num_domains + 1)
    uniform = torch.rand(shape, generator=generator).clamp(1e-20, 1.0 - 1e-7)
    noise: Observations = -torch.log(-torch.log(uniform)).numpy()
    return noise


def orders_of(drawn: list[DrawnOrders]) -> DomainOrders:
    """Put the orders of several networks side by side, each as many."""
    most = max(one.domains.shape[1] for one in drawn)
    domains = torch.zeros(len(drawn), len(drawn[0].sizes), most, dtype=torch.int64)
    for row, one in enumerate(drawn):
        domains[row, :, : one.domains.shape[1]] = torch.from_numpy(one.domains)
    sizes: Tensor = torch.stack([torch.from_numpy(one.sizes) for one in drawn])
    return DomainOrders(domains, sizes)


@torch.no_grad()
def drawn_plans(
    policy: PlacementPolicy,
    features: Features,
    judge: PlanJudge,
    job: Job,
    *,
    count: int,
    rng: np.random.Generator,
) -> list[Plan]:
    """Draw orders, and for each one a depth; layers are shared out as the policy says on average.

    The first order is the likeliest one. Plans whose layers do not fit are left out.
    """
    require_count("drawn plans", "count", count)
    networks = networks_of([features])
    encoded, scores = policy(networks)
    num_domains = len(features.nodes)
    noise = rng.gumbel(size=(count, num_domains + 1, num_domains + 1)).astype(np.float32)
    noise[0] = 0.0
    drawn = decode_orders(scores_of(scores, 0), features.facts, noise, judge.most_stages)
    orders = orders_of([drawn])
    logits = policy.heads.depth_logits(networks, encoded, orders)[0].numpy()
    depths = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    tilts = policy.heads.tilts(encoded, orders)[0].numpy().astype(np.float64)
    plans = depth_plans(drawn, judge.most_stages, range(len(DEPTHS)))
    weights = np.exp(tilts[:, : judge.most_stages]).repeat(len(DEPTHS), axis=0)
    levels_s = judge.fill_by(job, plans, np.ascontiguousarray(weights))
    rows = np.arange(count) * len(DEPTHS) + depths
    return [judge.plan(plans, row) for row in rows.tolist() if np.isfinite(levels_s[row])]
