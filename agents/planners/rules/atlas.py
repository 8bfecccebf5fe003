"""The greedy choice of domains of Atlas: fill stages domain by domain, and keep what is fastest."""

from collections.abc import Iterator

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.planners.choice.chains import Order, grow_chain, mutual_links
from agents.planners.choice.choosing import best_of, share_out
from des import Parallelism, Placement, Plan, Topology


def atlas(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Pipeline over the first domains of a good order, as many of them as make it fastest.

    The training is that of one model: nothing changes in it. Where nothing fits, the plan that
    lacks least is judged as if it did.

    Notes
    -----
    Data centres are sorted once, stages are filled one data centre after another, and the degree of
    data parallelism is enumerated, each candidate being judged by a simulator [1]_. Here the orders
    are that of the topology, those by GPUs and by the mean bandwidth to all others, the other
    breaking ties, and the chain that grows along the fastest link from the domain of the most
    bandwidth; the first ``k`` of each are filled with whole equal stages in proportion to their
    free GPUs (``attainable_flops_per_s``), for every ``k`` and every number of stages that divides
    the layers. The best of these is tried
    with all ways to share a domain's GPUs between tensor, data and pipeline parallelism, alike in
    all its domains. A domain as one device comes first, whose ``attainable_fraction`` covers tensor
    parallelism; explicit ways pay for their collectives on top of that. What Atlas does with shared
    bandwidth over time and several TCP connections is a matter of `des.world.transport`. Its
    authors have published no code that this rule could be held against.

    References
    ----------
    .. [1] Palak et al., "Improving training time and GPU utilization in geo-distributed language
       model training", arXiv 2411.14458, 2024.
    """
    chosen = best_of(problem, _fill(problem))
    return best_of(problem, [chosen, *_share_otherwise(problem, chosen)])


def _fill(problem: PlanningProblem) -> Iterator[Plan]:
    """Yield the plans over the first domains of each order, by layers and by larger stages."""
    domains, num_layers = problem.topology.domains, problem.workload.num_layers
    for order in dict.fromkeys(_orders(problem.topology)):
        for size in range(1, min(len(order), num_layers) + 1):
            free = [domains[domain].attainable_flops_per_s for domain in order[:size]]
            for layers_a_stage in _divisors(num_layers):
                num_stages = num_layers // layers_a_stage
                if num_stages >= size:
                    counts = [layers_a_stage * each for each in share_out(num_stages, free)]
                    yield problem.plan(Placement.contiguous(order[:size], counts))


def _orders(topology: Topology) -> Iterator[Order]:
    """Yield the orders of the topology, by GPUs, by bandwidth, and along the fastest links."""
    bandwidth, _ = mutual_links(topology)
    mean = bandwidth.sum(axis=1).tolist()
    num_gpus = [domain.num_gpus for domain in topology.domains]
    everyone = range(topology.num_domains)
    yield tuple(everyone)
    yield tuple(sorted(everyone, key=lambda domain: (-num_gpus[domain], -mean[domain])))
    by_bandwidth = sorted(everyone, key=lambda domain: (-mean[domain], -num_gpus[domain]))
    yield tuple(by_bandwidth)
    yield grow_chain(bandwidth, by_bandwidth[0])


def _share_otherwise(problem: PlanningProblem, plan: Plan) -> Iterator[Plan]:
    """Yield the plan with the GPUs of its domains shared in every other way that uses them all."""
    domains = problem.topology.domains
    used = {stage.domain: stage.num_layers for stage in plan.placement.stages}
    counts = {domains[domain].num_gpus for domain in used}
    if len(counts) > 1:
        return  # what is alike in all domains would leave GPUs idle
    (num_gpus,) = counts
    nodes = [domains[domain].nodes for domain in used]
    for tensor in _divisors(num_gpus):
        if not all(each is None or each.allows_tensor(tensor, num_gpus) for each in nodes):
            continue
        for data in _divisors(num_gpus // tensor):
            pipeline = num_gpus // tensor // data
            if pipeline > min(used.values()):
                continue
            shared = Parallelism(tensor=tensor, data=data, pipeline=pipeline)
            yield Plan(
                placement=plan.placement,
                schedule=plan.schedule,
                parallelism=tuple(
                    shared if index in used else Parallelism() for index in range(len(domains))
                ),
            )


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]
