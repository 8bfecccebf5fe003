"""Jobs of a queue on the domains of a network: workloads by size, plans by a planner."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from agents.cluster.pricing.iteration_prices import LinkName, PlacedJob
from agents.decision.problem import Planner, PlanningProblem
from des.cluster.free_gpus import Allocation, FreeCounts
from des.cluster.live_job import LiveJob
from des.cluster.node_set import ClusterPlace, NodeSet
from des.compiled.simulate import simulate_compiled
from des.job.model_presets import ALIASES, ARCHITECTURES
from des.job.models import build_workload
from des.job.workload import Workload
from des.plan.placement import Placement
from des.plan.plan import Plan
from des.plan.replacement import Replacement
from des.world.domain import Domain
from des.world.topology import Link, Topology

_MODEL_OF_GPUS = ((8, "llama2_13b"), (4, "llama2_7b"), (2, "llama3_2_3b"), (1, "llama3_2_1b"))

GpusByDomain = tuple[tuple[str, int], ...]
"""GPUs of a job in each domain that it has some in, by name."""


def workload_of_job(model: str, num_gpus: int) -> Workload:
    """Workload of a job: of its model where that is a preset, else of one that suits its GPUs.

    Examples
    --------
    >>> workload_of_job("resnet50", 4).name, workload_of_job("llama2_13b", 4).name
    ('llama2_7b', 'llama2_13b')
    """
    if ALIASES.get(model, model) not in ARCHITECTURES:
        model = next(name for least, name in _MODEL_OF_GPUS if num_gpus >= least)
    return build_workload(model, num_microbatches=8)


def nodes_of_network(topology: Topology, gpus_per_node: int) -> NodeSet:
    """Nodes of a network's domains, equal ones of a number of GPUs.

    Raises
    ------
    ValueError
        If a domain does not divide into such nodes, or two domains have no link.
    """
    topology.require_no_limits("network of a queue")
    places = []
    for domain in topology.domains:
        if domain.num_gpus % gpus_per_node:
            raise ValueError(
                f"domain {domain.name}: num_gpus must be a multiple of the {gpus_per_node} GPUs of "
                f"a node, got {domain.num_gpus}"
            )
        for other in topology.domains:
            pair = topology.index_of[domain.name], topology.index_of[other.name]
            if other is not domain and pair not in topology.link_index:
                raise ValueError(
                    f"network of a queue: must have a link between every two domains each way, "
                    f"got none from {domain.name} to {other.name}"
                )
        places += [
            ClusterPlace(name=f"{domain.name}-{number}", num_gpus=gpus_per_node, domain=domain.name)
            for number in range(domain.num_gpus // gpus_per_node)
        ]
    return NodeSet(nodes=tuple(places))


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkJobs:
    """Jobs on the domains of a network.

    A job's rate is 1 on all of its GPUs in the fastest domain. Jobs over several domains have the
    plan of ``planner``, made for the links as if they were alone.
    """

    topology: Topology
    planner: Planner
    workload_of: Callable[[str, int], Workload] = workload_of_job
    replacement: Replacement = field(default_factory=Replacement)
    _made: dict[tuple[str, int, GpusByDomain, int], PlacedJob] = field(default_factory=dict)

    def placed(self, job: LiveJob, free: FreeCounts) -> PlacedJob:
        """Return the job on the GPUs that it holds; the same object for equal arguments."""
        held = gpus_by_domain(job.allocation, free)
        key = job.job.model, sum(num_gpus for _, num_gpus in held), held, job.job.priority
        if key not in self._made:
            self._made[key] = self._make(*key)
        return self._made[key]

    def moved_bytes(self, job: LiveJob, free: FreeCounts) -> Mapping[LinkName, float]:
        """Model state of parts in domains where it has none yet, over the widest links. [bytes]"""
        return {link: num_bytes for link, num_bytes, _ in self._moves(job, free)}

    def move_s(self, job: LiveJob, free: FreeCounts) -> float:
        """Time of the longest of these moves, which run at once. [s]"""
        return max((time_s for _, _, time_s in self._moves(job, free)), default=0.0)

    def _moves(self, job: LiveJob, free: FreeCounts) -> list[tuple[LinkName, float, float]]:
        """Moves of a launch: link, bytes and time of each."""
        before = dict(gpus_by_domain(job.last_allocation, free))
        now = gpus_by_domain(job.allocation, free)
        if not before or not self.replacement.pays_bytes:
            return []
        placed = self.placed(job, free)
        workload = placed.workload
        state_bytes = job.job.state_bytes or (workload.state_bytes * sum(workload.num_parameters))
        num_gpus = sum(count for _, count in now)
        found = []
        for domain, count in now:
            if domain in before:
                continue
            links = [self._link(source, domain) for source in before]
            widest = max(links, key=lambda link: link.bandwidth_bytes_per_s)
            num_bytes = state_bytes * count / num_gpus
            time_s = widest.latency_s + num_bytes / widest.bandwidth_bytes_per_s
            found.append(((widest.source, domain), num_bytes, time_s))
        return found

    def _link(self, source: str, target: str) -> Link:
        index_of = self.topology.index_of
        return self.topology.link_between(index_of[source], index_of[target])

    def _make(self, model: str, num_gpus: int, held: GpusByDomain, priority: int) -> PlacedJob:
        workload = self.workload_of(model, num_gpus)
        fastest = max(self.topology.domains, key=_gpu_flops_per_s)
        whole = self._part(((fastest.name, num_gpus),))
        reference = simulate_compiled(whole, workload, _in_one_domain(workload))
        part = self._part(held)
        plan = _in_one_domain(workload)
        if len(held) > 1:
            problem = PlanningProblem(topology=part, workload=workload, simulator=simulate_compiled)
            plan = self.planner(problem, np.random.default_rng(0))
        return PlacedJob(
            topology=part,
            workload=workload,
            plan=plan,
            reference_s=reference.makespan_s,
            priority=priority,
        )

    def _part(self, held: GpusByDomain) -> Topology:
        """Part of the network that a job has: its GPUs, and the links between their domains."""
        names = {name for name, _ in held}
        index_of = self.topology.index_of
        links = [link for link in self.topology.links if {link.source, link.target} <= names]
        transport = self.topology.transport
        fewest = min(num_gpus for _, num_gpus in held)
        return Topology.of(
            [_cut(self.topology.domains[index_of[name]], num_gpus) for name, num_gpus in held],
            [replace(link, price_usd_per_gb=None) for link in links],
            transport=replace(
                transport, num_endpoint_pairs=min(transport.num_endpoint_pairs, fewest)
            ),
        )


def gpus_by_domain(allocation: Allocation, free: FreeCounts) -> GpusByDomain:
    """Count the GPUs of an allocation in each domain."""
    found: dict[str, int] = {}
    for node, gpus in allocation:
        domain = free.nodes.nodes[node].domain
        found[domain] = found.get(domain, 0) + gpus.bit_count()
    return tuple(sorted(found.items()))


def _gpu_flops_per_s(domain: Domain) -> float:
    return domain.gpu_peak_flops_per_s * domain.attainable_fraction


def _cut(domain: Domain, num_gpus: int) -> Domain:
    """Return a domain of some of the GPUs; servers that are not whole are left out."""
    nodes = domain.nodes
    if nodes is not None:
        num_nodes, rest = divmod(num_gpus, nodes.gpus_per_node)
        nodes = None if rest else nodes.resized(num_nodes)
    return replace(domain, num_gpus=num_gpus, nodes=nodes, gpu_price_usd_per_hour=None)


def _in_one_domain(workload: Workload) -> Plan:
    return Plan(placement=Placement.even(1, workload.num_layers))
