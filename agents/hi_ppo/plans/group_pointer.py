"""Pointer to the next domain or a break: scores, and how likely traces are."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.encoder import Encoded
from agents.hi_ppo.plans.group_decode import NUM_FACTS, NUM_PAIRS, GroupScores, GroupTrace
from agents.ppo.first_weights import FirstWeights, draw_linear

_FIRST_GAIN = 0.1


class GroupTraces(NamedTuple):
    """`GroupTrace` of B networks of at most K domains, N sequences of at most T steps each.

    Stops and breaks have the tokens K and K + 1 of the largest network.
    """

    tokens: Tensor
    sizes: Tensor
    last: Tensor
    came: Tensor
    facts: Tensor
    allowed: Tensor
    log_probs: Tensor


def traces_of(traces: Sequence[GroupTrace]) -> GroupTraces:
    """Put the traces of several networks side by side, each of as many sequences."""
    count = len(traces[0].sizes)
    most = max(one.came.shape[2] for one in traces)
    steps = max(int(one.sizes.max()) for one in traces)
    tokens = np.full((len(traces), count, steps), most, dtype=np.int64)
    last = np.full((len(traces), count, steps), most, dtype=np.int64)
    came = np.zeros((len(traces), count, steps, most), dtype=np.float32)
    facts = np.zeros((len(traces), count, steps, NUM_FACTS), dtype=np.float32)
    allowed = np.zeros((len(traces), count, steps, most + 2), dtype=np.bool_)
    allowed[..., most] = True
    for row, one in enumerate(traces):
        size, own = one.came.shape[2], min(steps, one.tokens.shape[1])
        beyond = most - size
        cut = one.tokens[:, :own]
        tokens[row, :, :own] = np.where(cut >= size, cut + beyond, cut)
        last[row, :, :own] = np.where(one.last[:, :own] == size, most, one.last[:, :own])
        came[row, :, :own, :size] = one.came[:, :own]
        facts[row, :, :own] = one.facts[:, :own]
        allowed[row, :, :own, :size] = one.allowed[:, :own, :size]
        allowed[row, :, :own, most:] = one.allowed[:, :own, size:]
        behind = np.arange(steps) >= one.sizes[:, np.newaxis]
        tokens[row][behind] = last[row][behind] = most
        allowed[row][behind] = False
        allowed[row][behind, most] = True
    fields = (tokens, np.stack([one.sizes for one in traces]), last, came, facts, allowed)
    log_probs = np.stack([one.log_probs for one in traces])
    return GroupTraces(*(torch.from_numpy(field) for field in (*fields, log_probs)))


class GroupPointerScores(NamedTuple):
    """`GroupScores` of B networks."""

    pair: Tensor
    chosen: Tensor
    drift: Tensor

    def of(self, row: int, num_domains: int) -> GroupScores:
        """Scores of one network as compiled code reads them, the absent domains left out."""
        most = self.chosen.shape[1]
        rows = [*range(num_domains), most]
        columns = [*range(num_domains), most, most + 1]
        parts = (
            self.pair[row].numpy()[:, rows][:, :, columns],
            self.chosen[row].numpy()[:num_domains, columns],
            self.drift[row].numpy()[:, columns],
        )
        return GroupScores(*(np.ascontiguousarray(part) for part in parts))


class GroupPointer(nn.Module):
    """Scores what may come next by what came last, what the group has, and facts on that."""

    def __init__(self, architecture: PlacementArchitecture, generator: FirstWeights) -> None:
        super().__init__()
        width, edge_width = architecture.width, architecture.edge_width
        self.ends = nn.Parameter(torch.randn(3, width, generator=generator) / math.sqrt(width))
        self.edges = nn.Parameter(torch.randn(3, edge_width, generator=generator))
        self.here = draw_linear(width, width, generator)
        self.there = draw_linear(width, width, generator)
        self.by_edge = draw_linear(edge_width, width, generator)
        self.by_whole = draw_linear(width, width, generator)
        self.pair = draw_linear(width, NUM_PAIRS, generator, _FIRST_GAIN)
        self.query = draw_linear(width, width, generator)
        self.key = draw_linear(width, width, generator)
        self.drift = draw_linear(2 * width, NUM_FACTS, generator, _FIRST_GAIN)
        self.width = width

    def forward(self, encoded: Encoded) -> GroupPointerScores:
        """Scores of B networks."""
        batch, most, width = encoded.nodes.shape
        whole = encoded.whole.unsqueeze(1)
        start, stop, pause = (one.expand(batch, 1, width) + whole for one in self.ends)
        rows = torch.cat([encoded.nodes, start], dim=1)
        columns = torch.cat([encoded.nodes, stop, pause], dim=1)
        begun, *ended = self.edges
        size = encoded.edges.shape[-1]
        down = torch.cat([encoded.edges, begun.expand(batch, 1, most, size)], dim=1)
        ends = [one.expand(batch, most + 1, 1, size) for one in ended]
        edges = torch.cat([down, *ends], dim=2)
        mixed = self.here(rows).unsqueeze(2) + self.there(columns).unsqueeze(1)
        mixed = mixed + self.by_edge(edges) + self.by_whole(encoded.whole)[:, None, None]
        chosen = self.query(encoded.nodes) @ self.key(columns).transpose(1, 2) / self.width
        options = torch.cat([columns, whole.expand_as(columns)], dim=-1)
        return GroupPointerScores(
            pair=self.pair(torch.relu(mixed)).permute(0, 3, 1, 2),
            chosen=chosen,
            drift=self.drift(options).transpose(1, 2),
        )


def trace_log_probs(scores: GroupPointerScores, traces: GroupTraces) -> tuple[Tensor, Tensor]:
    """Logarithms of the probabilities of traces and mean entropies of their choices, (B, N) each.

    All steps at once, the choices of `agents.hi_ppo.plans.group_decode.decode_groups`.
    """
    rows = torch.arange(len(traces.tokens))[:, None, None]
    pairs = scores.pair.permute(0, 2, 1, 3)[rows, traces.last]  # (B, N, T, 3, K + 2)
    plain = torch.ones_like(traces.facts[..., 0])
    by_pair = torch.stack([plain, traces.facts[..., 0], traces.facts[..., 3]], dim=-1)
    logits = (by_pair.unsqueeze(-2) @ pairs).squeeze(-2)
    mean = traces.came / traces.came.sum(dim=-1, keepdim=True).clamp(min=1.0)
    logits = logits + mean @ scores.chosen.unsqueeze(1) + traces.facts @ scores.drift.unsqueeze(1)
    log_p = logits.masked_fill(~traces.allowed, -torch.inf).log_softmax(dim=-1)
    counts = torch.arange(traces.tokens.shape[-1]) < traces.sizes.unsqueeze(-1)
    own = log_p.gather(-1, traces.tokens.unsqueeze(-1)).squeeze(-1) * counts
    finite = log_p.masked_fill(~traces.allowed, 0.0)
    entropy = -(finite.exp() * finite * traces.allowed).sum(dim=-1) * counts
    return own.sum(dim=-1), entropy.sum(dim=-1) / counts.sum(dim=-1)
