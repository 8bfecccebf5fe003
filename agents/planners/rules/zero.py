"""ZeRO: data parallelism over all GPUs that spreads the model state over them.

Both planners train a replica in every domain (see `data_parallel`), whose GPUs split every
microbatch (``Parallelism(data=num_gpus)``). The training is that of one model: nothing changes in
it. What they exchange, ``P`` being the parameters of 2 bytes each [1]_:

======  ======================================================  ========  =====================
stage   collectives of an iteration                             volume    in `des`
======  ======================================================  ========  =====================
ZeRO-1  reduce-scatter of gradients, all-gather of parameters   ``2 P``   16 bits a value
ZeRO-3  all-gather of parameters before the forward and before  ``3 P``   24 bits a value
        the backward pass, reduce-scatter of gradients
======  ======================================================  ========  =====================

A ring all-reduce sends ``2 (R - 1) / R`` times its buffer, a reduce-scatter or an all-gather half
of that. So ZeRO-1 sends over the WAN what the all-reduce of `des.program.exchange_lists` sends, and
ZeRO-3 one and a half times as much. `des` gathers weights inside a domain only; `zero3` has the
all-reduce send 24 bits a value instead of 16, which puts exactly the bytes of ZeRO-3 on every link
of the ring.

What that leaves out: all three collectives start with the last backward pass, where the forward
all-gather of ZeRO-3 can hide after the forward pass, and must be over before it. On WAN links the
exchange takes many times as long as the passes, so hiding it saves at most the time of these. And
within a domain ZeRO-3 is charged an all-reduce, ``2 P``. Every GPU does its share of the batch in
as few passes as there are microbatches of a replica, but gathers the parameters once an iteration,
not once a pass; that is in favour of ZeRO-3.

References
----------
.. [1] S. Rajbhandari et al., "ZeRO: Memory optimizations toward training trillion parameter
   models", SC'20, sections 5 and 7: memory ``4 + 12 / N`` and ``16 / N`` bytes a parameter on each
   of ``N`` GPUs, communication of 1 and 1.5 times that of data parallelism.
"""

from typing import Literal

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.planners.rules.data_parallel import whole_model_replicas
from des import EVERY_STEP, DiLoCo, DomainMemory, Parallelism, Plan, domain_memory
from des.job.transformer import OPTIMISER_BYTES, WEIGHT_BYTES


def _every_step(problem: PlanningProblem, num_gathers: int) -> DiLoCo:
    """Exchange of which an all-reduce sends what all-gathers and a reduce-scatter would.

    Weights are gathered, gradients scattered; a mode's bits are those of gradients of 16 bits.
    """
    gradient_bytes = problem.workload.gradient_bytes
    mean_bytes = (num_gathers * WEIGHT_BYTES + gradient_bytes) / 2
    return DiLoCo(
        steps_between=1,
        bits_per_value=mean_bytes / gradient_bytes * EVERY_STEP.bits_per_value,
    )


def zero1(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Spread the state of the optimiser over all GPUs; the same bytes as data parallelism.

    `des` counts the optimiser as spread over the GPUs of each domain only
    (``Parallelism.sharding``): `zero_memory` has the figures of ZeRO.
    """
    return _plan(problem, _every_step(problem, 1))


def zero3(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Spread parameters, gradients and optimiser over all GPUs, for half as many bytes again.

    `des` counts parameters and gradients on every GPU: `zero_memory` has the figures of ZeRO.
    """
    return _plan(problem, _every_step(problem, 2))


def zero_memory(
    problem: PlanningProblem, plan: Plan, stage: Literal[1, 3]
) -> tuple[DomainMemory, ...]:
    """Memory that a plan of `zero1` or `zero3` needs in every domain, by the formulas of ZeRO.

    Activations are as `des` counts them. Under ZeRO-3 every GPU also holds the gathered weights of
    the largest layer.
    """
    workload = problem.workload
    used = {placement.domain_of_layer[0] for placement in plan.placements}
    num_all = sum(problem.topology.domains[domain].num_gpus for domain in used)
    kept, spread = WEIGHT_BYTES + workload.gradient_bytes, float(OPTIMISER_BYTES)
    gathered = 0.0
    if stage == 3:
        kept, spread = 0, float(workload.state_bytes)
        gathered = WEIGHT_BYTES * max(workload.num_parameters)
    state_bytes = (kept + spread / num_all) * sum(workload.num_parameters) + gathered
    counted = domain_memory(problem.topology, workload, plan)
    return tuple(
        DomainMemory(
            domain=domain.name,
            model_state_bytes=domain.num_gpus * state_bytes if index in used else 0.0,
            activation_bytes=memory.activation_bytes,
            capacity_bytes=memory.capacity_bytes,
        )
        for index, (domain, memory) in enumerate(
            zip(problem.topology.domains, counted, strict=True)
        )
    )


def _plan(problem: PlanningProblem, synchronisation: DiLoCo) -> Plan:
    first, *others = whole_model_replicas(problem)
    return Plan(
        placement=first,
        schedule=problem.schedule,
        parallelism=tuple(
            Parallelism(data=domain.num_gpus, sharding="optimiser")
            for domain in problem.topology.domains
        ),
        replicas=tuple(others),
        synchronisation=synchronisation,
    )
