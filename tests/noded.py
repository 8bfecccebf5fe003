"""Domains of several nodes: a generator, and the nodes of groups found GPU by GPU."""

from collections import Counter
from dataclasses import replace

from hypothesis import strategies as st
from law_strategies import none_or
from sharing import parallel_cases

from des import Nodes, Parallelism, Plan, Topology, Workload


def sizes_of_nodes(num_gpus: int, parallelism: Parallelism) -> list[tuple[int, bool]]:
    """GPUs a node that a domain's parallelism allows, with and without tensor across nodes."""
    tensor, used = parallelism.tensor, parallelism.num_gpus
    found = []
    for size in (each for each in range(1, num_gpus + 1) if num_gpus % each == 0):
        if used <= size or size % tensor == 0:
            found += [(size, False), (size, True)]
        elif tensor % size == 0:
            found.append((size, True))
    return found


@st.composite
def with_nodes(draw: st.DrawFn, topology: Topology, *plans: Plan) -> Topology:
    """The world with nodes in some of its domains, on which the parallelism of plans may lie."""
    domains = []
    for index, domain in enumerate(topology.domains):
        allowed = set(sizes_of_nodes(domain.num_gpus, Parallelism()))
        for plan in plans:
            shared = plan.parallelism_of(index) or Parallelism()
            allowed &= set(sizes_of_nodes(domain.num_gpus, shared))
        size, across = draw(st.sampled_from(sorted(allowed)))
        nodes = Nodes(
            gpus_per_node=size,
            nics_per_node=draw(st.integers(1, 9)),
            nic_bandwidth_bytes_per_s=draw(st.floats(1e9, 1e11)),
            nic_latency_s=draw(none_or(1e-7, 1e-4)),
            tensor_across_nodes=across,
        )
        if draw(st.booleans()):
            num_nodes = domain.num_gpus // size
            named = st.lists(st.sampled_from("abc"), min_size=num_nodes, max_size=num_nodes)
            nodes = replace(
                nodes,
                racks=tuple(draw(named)),
                rack_uplink_bytes_per_s=draw(st.floats(1e9, 1e11)),
                rack_latency_s=draw(none_or(1e-7, 1e-4)),
            )
        domains.append(replace(domain, nodes=draw(st.sampled_from([nodes, nodes, None]))))
    return replace(topology, domains=tuple(domains))


@st.composite
def noded_cases(draw: st.DrawFn, **limits: object) -> tuple[Topology, Workload, Plan]:
    """All that `des.simulate` needs, with GPUs that share layers on nodes, and replicas."""
    topology, workload, plan = draw(parallel_cases(**limits))
    return draw(with_nodes(topology, plan)), workload, plan


def gpus_of_device(parallelism: Parallelism, device: int) -> list[list[int]]:
    """Numbers of a device's GPUs: one list a replica, of the GPUs that share its layers."""
    first = device * parallelism.gpus_per_device
    return [
        [first + replica * parallelism.tensor + place for place in range(parallelism.tensor)]
        for replica in range(parallelism.data)
    ]


def members_of_nodes(group: list[int], size: int) -> Counter[int]:
    """GPUs of a group in each node."""
    return Counter(gpu // size for gpu in group)
