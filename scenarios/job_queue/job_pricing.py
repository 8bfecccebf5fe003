"""Prices of a comparison: plain ones, or iterations on a network whose links jobs share."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from agents.cluster.pricing.link_rules import LinkRule
from agents.decision.problem import Planner, PlanningProblem
from agents.decision.situation import TIME_ONLY
from agents.planners.names import POLICY
from des.base.command import UsageError
from des.base.lazy import lazy_imports
from des.cluster.history import History
from des.cluster.node_set import NodeSet
from des.cluster.plain_pricing import PlainPricing
from des.cluster.policy import Pricing
from des.plan.plan import Plan
from des.plan.replacement import Replacement
from des.views.prices import BYTES_PER_GB
from des.world.topology import Topology
from des.worlds.reading import read_topology
from scenarios.job_queue.settings import Config

with lazy_imports(__name__):
    from agents.cluster.pricing import iteration_prices, link_pricing, network_jobs
    from agents.hi_ppo import proposing, schedulers
    from agents.planners import table


class LinkRow(NamedTuple):
    """Use of a link by all jobs of a run; ``usd`` is None where it has no price."""

    source: str
    target: str
    num_bytes: float
    mean_use: float
    usd: float | None


def queue_nodes(config: Config) -> NodeSet:
    """Nodes of the network's domains, or equal ones where there is no network.

    Raises
    ------
    ValueError
        If the network cannot be read or does not divide into nodes.
    """
    if config.network:
        return network_jobs.nodes_of_network(_network(config.network), config.gpus_per_node)
    return NodeSet.equal(
        config.nodes,
        config.gpus_per_node,
        nodes_per_rack=config.nodes_per_rack,
        num_domains=config.domains,
    )


def pricing_of(config: Config, replacement: Replacement) -> Pricing:
    """Prices of one run."""
    plain = PlainPricing(replacement=replacement)
    if config.pricing == "plain":
        return plain
    return link_pricing.LinkPricing(
        placer=network_jobs.NetworkJobs(
            topology=_network(config.network),
            planner=planner_named(config.planner),
            replacement=replacement,
        ),
        prices=iteration_prices.IterationPrices.open(config.price_store),
        rule=cast(LinkRule, config.link_sharing),
        plain=plain,
    )


def planner_named(name: str) -> Planner:
    """Planner of a name; ``hi_ppo`` is the trained policies.

    Raises
    ------
    UsageError
        If these are not shipped.
    """
    return _hi_ppo() if name == POLICY else table.PLANNERS[name].planner


@cache
def _hi_ppo() -> Planner:
    make = schedulers.make_shared_scheduler()
    if make is None:
        raise UsageError(f"--planner: {POLICY} needs trained policies, and none are shipped")
    scheduler = make()

    def plan(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
        scheduler.begin()
        situation = proposing.first_situation(
            problem.topology, problem.workload, TIME_ONLY, epoch_s=600.0
        )
        return scheduler.decide(situation).plan

    return plan


def link_rows(config: Config, history: History) -> list[LinkRow]:
    """Bytes on each link of the network, and their cost where it has prices; [] without them."""
    if config.pricing == "plain":
        return []
    topology = _network(config.network)
    carried = dict(history.link_bytes)
    return [
        LinkRow(
            source=link.source,
            target=link.target,
            num_bytes=num_bytes,
            mean_use=num_bytes / (link.bandwidth_bytes_per_s * history.end_s),
            usd=None if price is None else num_bytes / BYTES_PER_GB * price,
        )
        for link in topology.links
        for num_bytes in (carried.get((link.source, link.target), 0.0),)
        for price in (link.price_usd_per_gb,)
    ]


@cache
def _network(name: str | Path) -> Topology:
    return read_topology(name)
