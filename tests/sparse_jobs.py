"""Small jobs of real architectures, with experts or without, and plans that share them."""

from dataclasses import replace

from hypothesis import strategies as st
from noded import with_nodes

from des import Nodes, Parallelism, Placement, Plan, Topology, Workload
from des.job.architecture import Architecture, MixtureOfExperts
from des.job.models import build_workload

EXPERTS = MixtureOfExperts(
    num_experts=8, experts_per_token=2, expert_ffn_size=16, dense_layers=(0,)
)


def small(num_layers: int = 2, **fields: object) -> Architecture:
    """Layers of 4 heads of 2, gated."""
    sizes = {
        "name": "small",
        "num_layers": num_layers,
        "hidden_size": 8,
        "num_heads": 4,
        "num_key_value_heads": 2,
        "ffn_size": 32,
        "vocabulary_size": 100,
        "gated_ffn": True,
        "tied_embeddings": False,
    }
    return Architecture(**(sizes | fields))


def small_job(
    architecture: Architecture,
    *,
    recomputation: str = "flash",
    num_layers: int | None = None,
    sequence_length: int = 16,
) -> Workload:
    """Two microbatches of 2 sequences, of 16 tokens by default."""
    return build_workload(
        architecture,
        num_layers=num_layers,
        num_microbatches=2,
        microbatch_size=2,
        sequence_length=sequence_length,
        recomputation=recomputation,
    )


def whole_plan(workload: Workload, num_domains: int = 1, **parallelism: object) -> Plan:
    """All layers in a domain, or even parts in each, shared alike."""
    return Plan(
        placement=Placement.even(num_domains, workload.num_layers),
        parallelism=(Parallelism(**parallelism),) * num_domains,
    )


@st.composite
def shared_copies(draw: st.DrawFn) -> Parallelism:
    """Parallelism of at most 16 GPUs over sequences of 16 tokens and 8 experts."""
    context, data = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1, 2]))
    expert = draw(st.sampled_from([1, 2, context * data]))
    expert = expert if (context * data) % expert == 0 else 1
    tensor = draw(st.sampled_from([1, 2]))
    return Parallelism(
        tensor=tensor,
        data=data,
        context=context,
        expert=expert,
        expert_skew=draw(st.floats(1.0, expert)),
        whole_experts=tensor > 1 and expert > 1 and draw(st.booleans()),
        sharding=draw(st.sampled_from(["none", "optimiser", "gradients", "parameters"])),
    )


@st.composite
def two_replicas(draw: st.DrawFn, workload: Workload, num_domains: int) -> Plan:
    """Even parts over all domains but the last, which may be a replica; each shared in its way."""
    shared = [draw(shared_copies()) for _ in range(num_domains)]
    if workload.shape.architecture.experts is None:
        shared = [replace(one, expert=1, expert_skew=1.0, whole_experts=False) for one in shared]
    last = Placement(domain_of_layer=(num_domains - 1,) * workload.num_layers)
    return Plan(
        placement=Placement.even(num_domains - 1, workload.num_layers),
        replicas=draw(st.sampled_from([(), (last,)])),
        schedule=draw(st.sampled_from(["1f1b", "gpipe", "zb_h1"])),
        parallelism=tuple(shared),
    )


@st.composite
def noded_worlds(draw: st.DrawFn, topology: Topology, plan: Plan) -> Topology:
    """A world of 16 GPUs a domain, in nodes of 2, 4 or 16 GPUs that the plan may lie on."""
    sixteen = [replace(one, num_gpus=16, gpu_memory_bytes=1e12) for one in topology.domains]
    found = draw(with_nodes(replace(topology, domains=tuple(sixteen)), plan))
    wide = Nodes(
        gpus_per_node=16, nics_per_node=1, nic_bandwidth_bytes_per_s=1e9, nic_latency_s=0.0
    )
    domains = []
    for domain, shared in zip(found.domains, plan.parallelism, strict=True):
        size = 16 if domain.nodes is None else domain.nodes.gpus_per_node
        blocks = (shared.tensor * shared.context, shared.expert_parts)
        fits = all(size % block == 0 or block % size == 0 for block in blocks)
        domains.append(domain if fits else replace(domain, nodes=wide))
    return replace(found, domains=tuple(domains))
