"""Data parallelism across domains: a replica of the whole model in each."""

import numpy as np

from agents.decision.problem import PlanningProblem
from agents.planners.choice.chains import best_ring, mutual_links
from des import Placement, Plan


def data_parallel(problem: PlanningProblem, rng: np.random.Generator) -> Plan:
    """Train a replica in every domain, and sum gradients up over the WAN after every iteration.

    The training is that of one model on the same batch: nothing changes in it. A model that does
    not fit into one domain's memory is judged as if it did; `IterationResult.fits_memory` of the
    outcome tells. Of more domains than microbatches the fastest take one each.

    Notes
    -----
    `des` splits microbatches evenly (`Plan.microbatches_of_replicas`), whatever the speeds of the
    replicas, and the first ones take the remainder. The GPUs of domains are alike, so what a
    proportional split would win is the load of the domains; the ring begins where the domains that
    take a microbatch more are fastest. The exchange is the hierarchical one of
    `des.program.exchange_lists`: a
    reduce-scatter inside, a ring over the domains of ``2 (R - 1)`` steps of ``1 / R`` of the
    gradients, an all-gather inside; here a domain is one device, so that only the ring costs. It
    starts as the last backward pass makes the gradients. The order of the ring is the one whose
    slowest link is fastest (`chains.best_ring`).
    """
    first, *others = whole_model_replicas(problem)
    return Plan(placement=first, schedule=problem.schedule, replicas=tuple(others))


def whole_model_replicas(problem: PlanningProblem) -> tuple[Placement, ...]:
    """Return a placement of all layers for every domain, in the order of the ring.

    Of more domains than microbatches only the fastest. Domains that no ring joins stay in the order
    of the topology: messages take relays, or there is no way and the plan cannot be simulated.
    """
    topology, workload = problem.topology, problem.workload
    speeds = [domain.attainable_flops_per_s for domain in topology.domains]
    by_speed = sorted(range(topology.num_domains), key=lambda domain: -speeds[domain])
    members = sorted(by_speed[: workload.num_microbatches])
    ring = best_ring(*mutual_links(topology), members) or tuple(members)
    rest = workload.num_microbatches % len(ring)
    turned = [ring[first:] + ring[:first] for first in range(len(ring))]
    best = max(turned, key=lambda order: min((speeds[each] for each in order[:rest]), default=0.0))
    return tuple(Placement(domain_of_layer=(domain,) * workload.num_layers) for domain in best)
