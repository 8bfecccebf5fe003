"""Other exchanges of a plan's copies: the order of a ring, buckets, and trees."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np

from agents.search.figure_tables import FigureTables
from agents.search.rings import quickest_ring
from agents.search.trees import best_tree
from des import GradientExchange, Plan, Workload
from des.plan.synchronisation import agree_every_step

_NUM_BUCKETS = 8
"""Buckets into which the gradients of a copy are divided where that is tried."""


def other_exchanges(tables: FigureTables, workload: Workload, plan: Plan) -> Iterator[Plan]:
    """The plan with its copies in the order of a quick ring or tree, and in buckets.

    Two copies need no tree, as a ring divides what it sends into as many parts; copies that share
    the optimiser's state have none.
    """
    num_copies, mode, exchange = len(plan.placements), plan.synchronisation, plan.exchange
    if num_copies < 2:
        return
    num_bytes = float(workload.gradient_bytes)
    if not agree_every_step(mode):
        num_bytes = mode.bits_per_value / 8.0
    cost_s, latency_s = _ways_s(tables, workload, plan, num_bytes)
    if not np.isfinite(cost_s).all():
        return
    total_bytes = workload.gradient_bytes * sum(workload.num_parameters)
    buckets = replace(exchange, bucket_bytes=total_bytes / _NUM_BUCKETS)
    is_whole = not agree_every_step(mode) and mode.overlap_steps > 0
    for each in (exchange,) if is_whole else (exchange, buckets):
        yield _order(plan, quickest_ring(cost_s / num_copies + latency_s), each)
    if num_copies > 2 and not exchange.sharded:
        layer_bytes = workload.gradient_bytes * min(workload.num_parameters)
        is_whole = is_whole or layer_bytes == 0.0
        tree = best_tree(cost_s, latency_s, 1 if is_whole else workload.num_layers)
        layers = exchange if is_whole else replace(exchange, bucket_bytes=layer_bytes)
        yield _order(plan, tree.order, replace(layers, tree=tree.above))


def _order(plan: Plan, order: tuple[int, ...], exchange: GradientExchange) -> Plan:
    """The plan with its copies in another order."""
    first, *others = [plan.placements[at] for at in order]
    shares = tuple(plan.shares[at] for at in order) if plan.shares else ()
    return replace(plan, placement=first, replicas=tuple(others), shares=shares, exchange=exchange)


def _ways_s(
    tables: FigureTables, workload: Workload, plan: Plan, num_bytes: float
) -> tuple[np.ndarray, np.ndarray]:
    """Time of all parameters from each copy to each other by its slowest way, and latency. [s]

    Shaped (copies, copies). Ways between different sites do not delay each other.
    """
    domains = np.array([one.domain_of_layer for one in plan.placements])
    parameters, (count, _) = np.array(workload.num_parameters, float), domains.shape
    probe_bytes = num_bytes * parameters.sum()
    byte_s, flight_s = tables.ways_s(probe_bytes)[..., 0] / probe_bytes, tables.ways_s(1.0)[..., 1]
    cost_s, latency_s = np.zeros((2, count, count))
    for here, there in permutations(range(count), 2):
        sent = np.zeros_like(byte_s)
        np.add.at(sent, (domains[here], domains[there]), parameters * num_bytes)
        np.fill_diagonal(sent, 0.0)
        used = sent > 0.0
        cost_s[here, there] = (sent[used] * byte_s[used]).max(initial=0.0)
        latency_s[here, there] = flight_s[used].max(initial=0.0)
    return cost_s, latency_s
