"""Features of a situation for the placement policy: numbers without units, whatever the scale."""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from agents.decision.situation import TIME_ONLY, Preference
from agents.hi_ppo.placement.config import PlacementArchitecture
from agents.hi_ppo.placement.decode import Facts
from agents.judge.look_ahead import price_matrix
from des import Plan, Topology
from des.compiled.many.layout import Flags, Observations, Real
from des.compiled.many.steady import Job
from des.world.domain_load import DomainLoad

NODE_SIZE, EDGE_SIZE, GLOBAL_SIZE = 15, 10, 12
MOST_DOMAINS = 16

PREFERENCE = slice(6, 9)
"""Entries of `Features.whole` with the weights of time, utilisation and communication."""


class Features(NamedTuple):
    """One situation of K domains: ``nodes`` (K, 15), ``edges`` (K, K, 10), ``whole`` (12,).

    Edges go from row to column; their own entries are 0, as those of pairs that no link joins.
    """

    nodes: Observations
    edges: Observations
    whole: Observations
    facts: Facts


def features_of(
    topology: Topology,
    base: Job,
    job: Job,
    *,
    loads: tuple[DomainLoad, ...] = (),
    last_plan: Plan | None = None,
    preference: Preference = TIME_ONLY,
    pays_bytes: bool = True,
    most_domains: int = MOST_DOMAINS,
) -> Features:
    """Describe a situation.

    Parameters
    ----------
    topology
        The network as it is; only its prices are read.
    base, job
        Times of stages and borders at base figures, and as they are now, see
        `agents.judge.steady_judge.SteadyJudge.job_of`.

    Raises
    ------
    ValueError
        If there are more than ``most_domains``, or a figure is not a number.

    Notes
    -----
    Times are over the forward time of an even share of the layers at mean speed, speeds over their
    mean, memory over an even share of the model state, prices over their mean; what may be large
    goes by its logarithm. So the units do not count, nor how large the model is.
    """
    num_domains = topology.num_domains
    if not 1 <= num_domains <= most_domains:
        raise ValueError(
            f"placement features: topology must have 1 to {most_domains} domains, got {num_domains}"
        )
    can_follow: Flags = np.isfinite(job.wire_s) & np.isfinite(job.wire_s.T)
    np.fill_diagonal(can_follow, False)
    rates = job.rate_flops_per_s
    forward_s = float(job.sums_before[-1, 0]) / float(rates.sum())
    log_ratio = _log_or_zero(job.wire_s, can_follow) - can_follow * math.log(forward_s)
    edges = np.empty((num_domains, num_domains, EDGE_SIZE))
    edges[:, :, 0] = log_ratio
    edges[:, :, 2] = np.log1p(job.latency_s / forward_s) * can_follow
    edges[:, :, 4] = _log_or_zero(job.wire_s, can_follow) - _log_or_zero(base.wire_s, can_follow)
    edges[:, :, 6] = (price_matrix(topology) - 1.0) * can_follow
    edges[:, :, 8] = _borders_of(last_plan, num_domains)
    edges[:, :, 1:9:2] = edges[:, :, 0:8:2].transpose(1, 0, 2)
    edges[:, :, 9] = can_follow
    state_bytes = job.bytes_per_parameter * float(job.sums_before[-1, -1])
    memory_share = job.capacity_bytes / state_bytes
    nodes = np.concatenate(
        [
            _speeds(rates, base.rate_flops_per_s, memory_share),
            _loads(loads, num_domains),
            _places(last_plan, num_domains),
            _ratios(np.maximum(log_ratio, log_ratio.T), can_follow),
            np.log(rates[:, np.newaxis] / rates.max()),
        ],
        axis=1,
    )
    mean_ratio = float(log_ratio.sum()) / max(1, int(can_follow.sum()))
    whole = np.array(
        [
            mean_ratio,
            math.log(job.num_microbatches) / 4.0,
            math.log(num_domains),
            num_domains / 10.0,
            math.log(len(job.sums_before) - 1) / 4.0,
            math.log(float(memory_share.sum())),
            preference.time,
            preference.utilisation,
            preference.communication,
            float(pays_bytes),
            float(last_plan is not None),
            math.log1p(math.exp(mean_ratio)),
        ]
    )
    facts = Facts(
        speed_share=(rates / rates.sum()).astype(np.float32),
        memory_share=memory_share.astype(np.float32),
        log_ratio=np.maximum(log_ratio, log_ratio.T).astype(np.float32),
        can_follow=can_follow,
    )
    found = Features(
        nodes.astype(np.float32), edges.astype(np.float32), whole.astype(np.float32), facts
    )
    named = {"nodes": found.nodes, "edges": found.edges, "whole": found.whole}
    for name, figures in named.items():
        if not np.isfinite(figures).all():
            raise ValueError(f"placement features: {name} must be finite, got {figures!r}")
    return found


def seen_by(architecture: PlacementArchitecture, features: Features) -> Features:
    """Features as a policy of an architecture sees them, in its training and in use.

    Preference-blind policies get zero weights, which no real preference has.
    """
    if architecture.sees_preference:
        return features
    whole = features.whole.copy()
    whole[PREFERENCE] = 0.0
    return features._replace(whole=whole)


def _log_or_zero(wire_s: Real, where: Flags) -> Real:
    """Logarithms where there is a link that takes time; a free one counts as 1e-12 s."""
    logarithms: Real = np.log(np.where(where, np.maximum(wire_s, 1e-12), 1.0))
    return logarithms


def _speeds(rates: Real, base_rates: Real, memory_share: Real) -> Real:
    num_domains = len(rates)
    return np.stack(
        [
            np.log(rates / rates.mean()),
            np.log(rates / base_rates),
            np.log(memory_share * num_domains) / 2.0,
            np.log(memory_share),
        ],
        axis=1,
    )


def _loads(loads: tuple[DomainLoad, ...], num_domains: int) -> Real:
    if not loads:
        return np.zeros((num_domains, 3))
    return np.array(
        [[one.utilisation, one.memory_occupancy, math.log1p(one.queue_length)] for one in loads]
    )


def _places(plan: Plan | None, num_domains: int) -> Real:
    """Place of each domain: share of layers over an even one, place from 0 to 1, used or not."""
    places = np.zeros((num_domains, 3))
    if plan is None:
        return places
    stages = plan.placement.stages
    num_layers = len(plan.placement.domain_of_layer)
    for stage in stages:
        places[stage.domain, 0] += stage.num_layers * num_domains / num_layers
        places[stage.domain, 1] = stage.index / max(1, len(stages) - 1)
        places[stage.domain, 2] = 1.0
    return places


def _borders_of(plan: Plan | None, num_domains: int) -> Real:
    """Borders that a plan crosses, (K, K): from row to column and back."""
    borders = np.zeros((num_domains, num_domains))
    if plan is not None:
        stages = plan.placement.stages
        for one, other in pairwise(stages):
            borders[one.domain, other.domain] = 1.0
    return borders


def _ratios(log_ratio: Real, can_follow: Flags) -> Real:
    """Ratios of each domain: mean of its links, the two best, and the worst; 0 without links."""
    num_domains = len(log_ratio)
    found = np.zeros((num_domains, 4))
    num_links = can_follow.sum(axis=1)
    found[:, 0] = (log_ratio * can_follow).sum(axis=1) / np.maximum(num_links, 1)
    ordered = np.sort(np.where(can_follow, log_ratio, np.inf), axis=1)
    rows = np.arange(num_domains)
    for column, rank in ((1, np.zeros_like(num_links)), (2, np.minimum(1, num_links - 1))):
        found[:, column] = ordered[rows, np.maximum(rank, 0)]
    found[:, 3] = ordered[rows, np.maximum(num_links - 1, 0)]
    found[num_links == 0] = 0.0
    return found
