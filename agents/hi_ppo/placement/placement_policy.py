"""The placement policy: one set of weights for networks of 2 to 16 domains."""

from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from agents.decision.depths import DEPTHS
from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.decode import Scores
from agents.hi_ppo.placement.drawn_orders import DrawnOrders, decode_orders, depth_plans
from agents.hi_ppo.placement.encoder import Encoded, Encoder, Networks, networks_of
from agents.hi_ppo.placement.features import Features
from agents.hi_ppo.placement.heads import Heads
from agents.hi_ppo.placement.placement_checkpoint import PlacementNet
from agents.hi_ppo.placement.pointer import DomainOrders, Pointer, PointerScores
from agents.judge.look_ahead import PlanJudge
from agents.ppo.first_weights import FirstWeights
from agents.ppo.trained_net import Numbers
from agents.ppo.trained_policy import module_numbers, tensors_of
from des.compiled.many.layout import Observations
from des.compiled.many.steady import Job, Plans


class PlacementPolicy(nn.Module):
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

    @property
    def numbers(self) -> Numbers:
        """The numbers as they are now, see `agents.ppo.trained_net`."""
        return module_numbers(self)

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


def drawn_noise(count: int, num_domains: int, generator: torch.Generator) -> Observations:
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
