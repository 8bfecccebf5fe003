"""The plan policy: one set of weights that proposes groups of 2 to 64 domains and schedules."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.decode import Facts
from agents.hi_ppo.placement.encoder import Encoded, Encoder, Networks
from agents.hi_ppo.plans.group_decode import GroupScores, GroupTrace, decode_groups
from agents.hi_ppo.plans.group_pointer import GroupPointer, GroupPointerScores, GroupTraces
from agents.hi_ppo.plans.sketch_judge import SKETCH_SCHEDULES
from agents.ppo.first_weights import FirstWeights, draw_linear
from des.compiled.many.layout import Observations

_FIRST_GAIN = 0.01
_NUM_PLAN_FACTS = 4


class PlanPolicy(nn.Module):
    """Encoder, pointer and schedules; weights are drawn from ``generator`` only."""

    def __init__(
        self,
        architecture: PlacementArchitecture,
        schedules: Sequence[str],
        generator: FirstWeights,
    ) -> None:
        super().__init__()
        self.architecture, self.schedules = architecture, tuple(schedules)
        self.encoder = Encoder(architecture, generator)
        self.pointer = GroupPointer(architecture, generator)
        width = architecture.width
        self.summed = draw_linear(2 * width + _NUM_PLAN_FACTS, width, generator)
        self.schedule = draw_linear(width, len(self.schedules), generator, _FIRST_GAIN)

    def forward(self, networks: Networks) -> tuple[Encoded, GroupPointerScores]:
        """Descriptions and scores of B networks."""
        encoded: Encoded = self.encoder(networks)
        scores: GroupPointerScores = self.pointer(encoded)
        return encoded, scores

    def schedule_logits(self, networks: Networks, encoded: Encoded, traces: GroupTraces) -> Tensor:
        """Logits of the schedules for each trace, (B, N, S)."""
        most = encoded.nodes.shape[1]
        is_domain = traces.tokens < most
        rows = torch.arange(len(traces.tokens))[:, None, None]
        nodes = encoded.nodes[rows, traces.tokens.clamp(max=most - 1)] * is_domain.unsqueeze(-1)
        num_used = is_domain.sum(dim=-1, keepdim=True).clamp(min=1)
        num_groups = (traces.tokens == most + 1).sum(dim=-1, keepdim=True) + 1
        facts = [
            num_used / networks.num_domains[:, None, None],
            (num_used / num_groups).log(),
            num_groups.log(),
            traces.facts[..., 3].amax(dim=-1, keepdim=True),
        ]
        whole = encoded.whole.unsqueeze(1).expand(-1, nodes.shape[1], -1)
        mixed = self.summed(torch.cat([nodes.sum(dim=2) / num_used, whole, *facts], dim=-1))
        logits: Tensor = self.schedule(torch.relu(mixed))
        return logits


def untrained_plan_policy(seed: int) -> PlanPolicy:
    """Draw a plan policy that has learnt nothing: the measure of what training is worth."""
    generator = torch.Generator().manual_seed(seed)
    return PlanPolicy(PlacementArchitecture(), SKETCH_SCHEDULES, generator)


def drawn_trace(
    scores: GroupScores, facts: Facts, noise: Observations, most_stages: int, most_groups: int
) -> GroupTrace:
    """Choose as many sequences as there is noise for, see `decode_groups`."""
    trace = GroupTrace.empty(len(noise), len(facts.speed_share))
    decode_groups(scores, facts, noise, most_stages, most_groups, trace)
    return trace


def trace_noise(
    count: int, num_domains: int, generator: torch.Generator, *, num_greedy: int = 0
) -> Observations:
    """Draw Gumbel noise that makes samples of choices; the first ``num_greedy`` get none."""
    shape = (count, 2 * num_domains, num_domains + 2)
    uniform = torch.rand(shape, generator=generator).clamp(1e-20, 1.0 - 1e-7)
    noise: Observations = -torch.log(-torch.log(uniform)).numpy()
    noise[:num_greedy] = 0.0
    return noise


def groups_of(tokens: np.ndarray, num_domains: int) -> tuple[tuple[int, ...], ...]:
    """Groups of domains, in their orders, that the tokens of one sequence say.

    Examples
    --------
    >>> groups_of(np.array([2, 0, 4, 1, 3]), 3)
    ((2, 0), (1,))
    """
    groups: list[list[int]] = [[]]
    for token in tokens.tolist():
        if token == num_domains:
            break
        if token == num_domains + 1:
            groups.append([])
        else:
            groups[-1].append(token)
    return tuple(tuple(group) for group in groups)


def tokens_of(groups: Sequence[Sequence[int]], num_domains: int) -> list[int]:
    """Tokens of groups, the stop among them: what `groups_of` reads.

    Examples
    --------
    >>> tokens_of(((2, 0), (1,)), 3)
    [2, 0, 4, 1, 3]
    """
    tokens: list[int] = []
    for group in groups:
        tokens += [*group, num_domains + 1]
    return [*tokens[:-1], num_domains]
