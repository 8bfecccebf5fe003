"""Plan of a Megatron-LM user, over several domains."""

from itertools import chain

import numpy as np

from agents.decision.problem import PlanningProblem
from des import Placement, Plan
from des.plan.plan import split_evenly

NUM_CHUNKS = 2
"""Parts of the model that each domain holds under interleaved 1F1B."""


def megatron(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Pipeline of equal parts over the domains in their order, by interleaved 1F1B.

    Tensor parallelism over all GPUs of a domain is what a domain without a `Parallelism` stands
    for: one device, whose ``attainable_fraction`` covers the all-reduces inside. The model goes
    round the domains `NUM_CHUNKS` times. Where there is one domain, or too few layers to go round
    twice, it goes once, under the schedule of the problem. Neither links nor speeds of the
    domains count. The training is that of one model: nothing changes in it.

    References
    ----------
    .. [1] D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
       Megatron-LM", SC 2021: tensor parallelism within a server, pipelines across, section 2.2.
    """
    num_layers = problem.workload.num_layers
    num_domains = min(problem.topology.num_domains, num_layers)
    if num_domains == 1 or NUM_CHUNKS * num_domains > num_layers:
        return problem.plan(Placement.even(num_domains, num_layers))
    counts = split_evenly(num_layers, NUM_CHUNKS * num_domains)
    rounds = chain.from_iterable(range(num_domains) for _ in range(NUM_CHUNKS))
    return problem.plan(Placement.contiguous(list(rounds), counts), "interleaved_1f1b")
