"""Use of links, domains and memory by a plan, mean over a period of its synchronisation."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from agents.decision.whole_plan import JudgedPlan
from agents.judge.learner_steps import learner_paces, merging
from des import Corrections, IterationResult, Topology
from des.compiled.simulate import simulate_compiled
from des.costs.memory import DomainMemory
from des.plan.buckets import buckets_behind
from des.plan.exchange_steps import exchange_steps, num_parts
from des.plan.learners import has_own_clocks, learners_of
from des.plan.synchronisation import fragments_due
from des.views.prices import BYTES_PER_GB, SECONDS_PER_HOUR, keep_counted_prices, require_price


@dataclass(frozen=True, kw_only=True)
class MeanUse:
    """Figures of a mean step.

    Attributes
    ----------
    link_bytes
        On each link of the topology, every hop of a route counted. [bytes]
    busy_s
        Time for which a domain computes (``East``) or a link sends (``East->West``); of several
        devices in a domain the busiest. [s]
    memory
        Peak of every domain of the topology.
    """

    link_bytes: tuple[float, ...]
    busy_s: Mapping[str, float]
    memory: tuple[DomainMemory, ...]

    @property
    def wan_bytes(self) -> float:
        """Bytes over all links. [bytes]"""
        return math.fsum(self.link_bytes)

    @property
    def fullest(self) -> DomainMemory:
        """Memory of the domain that has the least share of it left."""
        return max(self.memory, key=lambda one: one.required_bytes / one.capacity_bytes)


def mean_use(topology: Topology, judged: JudgedPlan, corrections: Corrections) -> MeanUse:
    """Simulate the steps of a period that differ, and take the mean of what they use."""
    if has_own_clocks(judged.plan):
        return _use_of_learners(topology, judged, corrections)
    counts: Counter[tuple[int, ...]] = Counter()
    first_step: dict[tuple[int, ...], int] = {}
    period = judged.plan.synchronisation.steps_between if judged.plan.replicas else 1
    for step in range(period):
        due = _due(judged, step)
        counts[due] += 1
        first_step.setdefault(due, step)
    num_bytes = [0.0] * len(topology.links)
    busy_s: dict[str, float] = {}
    memory: tuple[DomainMemory, ...] = ()
    result: IterationResult | None = None
    for due, count in counts.items():
        share, step = count / period, first_step[due]
        if result is None or judged.plan.synchronisation.overlap_steps == 0:
            result = simulate_compiled(
                topology, judged.workload, judged.plan, corrections, step=step
            )
        memory = result.memory
        behind = _bytes_behind(topology, judged, step)
        for name, used_s in _busy_s(result, topology, behind).items():
            busy_s[name] = busy_s.get(name, 0.0) + share * used_s
        for link, use in enumerate(result.links):
            num_bytes[link] += share * (use.num_bytes + behind[link])
    return MeanUse(link_bytes=tuple(num_bytes), busy_s=busy_s, memory=memory)


def _use_of_learners(topology: Topology, judged: JudgedPlan, corrections: Corrections) -> MeanUse:
    """Use by the steps that each learner does in a mean step, and by its outer steps."""
    workload, plan = judged.workload, judged.plan
    paces = learner_paces([topology], workload, plan, corrections)[0]
    joint = simulate_compiled(topology, workload, plan, corrections)
    merged = replace(judged, plan=merging(plan))
    merged_bytes = _bytes_behind(topology, merged, plan.synchronisation.steps_between - 1)
    num_bytes = [paces.num_merges * each for each in merged_bytes]
    busy_s = dict[str, float]()
    nothing = [0.0] * len(num_bytes)
    for (own, alone), count in zip(learners_of(workload, plan), paces.learner_steps, strict=True):
        result = simulate_compiled(topology, own, alone, corrections)
        for name, used_s in _busy_s(result, topology, nothing).items():
            busy_s[name] = busy_s.get(name, 0.0) + count * used_s
        num_bytes = [
            sent + count * use.num_bytes for sent, use in zip(num_bytes, result.links, strict=True)
        ]
    for link, each in zip(topology.links, merged_bytes, strict=True):
        busy_s[f"{link.source}->{link.target}"] += (
            paces.num_merges * each / link.bandwidth_bytes_per_s
        )
    return MeanUse(link_bytes=tuple(num_bytes), busy_s=busy_s, memory=joint.memory)


def step_usd(topology: Topology, judged: JudgedPlan, use: MeanUse) -> float | None:
    """Cost of a mean step at the prices of the world, see `keep_counted_prices`. [USD]

    As in `des.views.prices`: all GPUs of domains in use are paid for, busy or idle. None where the
    world does not price all its GPUs.
    """
    priced = keep_counted_prices(topology)
    if priced is None:
        return None
    of_links = [
        num_bytes / BYTES_PER_GB * require_price(link, "price_usd_per_gb")
        for link, num_bytes in zip(priced.links, use.link_bytes, strict=True)
        if num_bytes > 0.0
    ]
    hours = judged.step_s / SECONDS_PER_HOUR
    used = {domain for one in judged.plan.placements for domain in one.domain_of_layer}
    of_gpus = [
        topology.domains[domain].num_gpus
        * hours
        * require_price(topology.domains[domain], "gpu_price_usd_per_hour")
        for domain in sorted(used)
    ]
    return math.fsum(of_links) + math.fsum(of_gpus)


def _due(judged: JudgedPlan, step: int) -> tuple[int, ...]:
    """First layers of the fragments that are exchanged after a step."""
    if not judged.plan.replicas:
        return ()
    fragments = fragments_due(judged.plan.synchronisation, step, judged.workload.num_layers)
    return tuple(fragment.layers[0] for fragment in fragments)


def _bytes_behind(topology: Topology, judged: JudgedPlan, step: int) -> list[float]:
    """Bytes on each link of the exchange after the steps after a step. [bytes]"""
    num_bytes = [0.0] * len(topology.links)
    stages = judged.plan.stages
    for bucket in buckets_behind(judged.workload, judged.plan, step):
        domains = [stages[stage].domain for stage in bucket.stages]
        tree = judged.plan.exchange.tree
        part_bytes = bucket.num_bytes / num_parts(tree, len(domains))
        for here, own in zip(domains, exchange_steps(tree, len(domains)), strict=True):
            for receiver in (one.other for one in own if one.is_sent):
                for link in topology.route(here, domains[receiver]):
                    num_bytes[link] += part_bytes
    return num_bytes


def _busy_s(
    result: IterationResult, topology: Topology, behind: list[float]
) -> Mapping[str, float]:
    """Busy times of domains and links in one step with the exchange after it. [s]"""
    devices: dict[tuple[str, int], float] = {}
    for stage in result.stages:
        device = stage.domain, stage.device
        devices[device] = devices.get(device, 0.0) + stage.busy_s
    found: dict[str, float] = {}
    for (domain, _), used_s in devices.items():
        found[domain] = max(found.get(domain, 0.0), used_s)
    for link, use, extra in zip(topology.links, result.links, behind, strict=True):
        found[f"{link.source}->{link.target}"] = use.busy_s + extra / link.bandwidth_bytes_per_s
    return found
