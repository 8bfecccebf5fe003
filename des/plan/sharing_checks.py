"""Parallelism that a job or the nodes of a domain do not allow, refused by name."""

from des.job.workload import Workload
from des.plan.parallelism import Parallelism
from des.world.domain import Domain
from des.world.nodes import Nodes


def check_sharing(owner: str, parallelism: Parallelism, domain: Domain, workload: Workload) -> None:
    """Refuse a division of layers that a domain or a job does not allow.

    Raises
    ------
    ValueError
        Naming the owner, what is allowed and what came.
    """
    if domain.nodes is not None:
        domain.nodes.check_tensor(owner, parallelism.tensor, parallelism.num_gpus)
    if parallelism.num_gpus > domain.num_gpus:
        raise ValueError(
            f"{owner} must use at most its "
            f"{domain.num_gpus} GPUs, got {parallelism}, which is {parallelism.num_gpus}"
        )
    if parallelism.context > 1:
        _check_context(owner, parallelism.context, workload)
    if parallelism.expert > 1:
        _check_experts(owner, parallelism.expert, workload)
    if domain.nodes is not None:
        _check_nodes(owner, parallelism, domain.nodes)
    if domain.profile is not None and (parallelism.context > 1 or parallelism.expert > 1):
        raise ValueError(
            f"{owner}: context and expert must be 1 with a profile, which has no times of parts of "
            f"a sequence or of experts; got {parallelism}"
        )


def _check_nodes(owner: str, parallelism: Parallelism, nodes: Nodes) -> None:
    """Refuse context and expert groups that would straddle nodes."""
    size = nodes.gpus_per_node
    whole = parallelism.whole_experts
    for field, count, block in (
        ("tensor x context", parallelism.context, parallelism.tensor * parallelism.context),
        ("expert" if whole else "tensor x expert", parallelism.expert, parallelism.expert_parts),
    ):
        if count > 1 and parallelism.num_gpus > size and size % block and block % size:
            raise ValueError(
                f"{owner}: {field} must divide the {size} GPUs of a node or be a multiple "
                f"of them, got {block}"
            )


def _check_context(owner: str, context: int, workload: Workload) -> None:
    shape = workload.shape
    if shape is None:
        raise ValueError(
            f"{owner}: context must be 1 for workload {workload.name}, the sizes of whose keys and "
            f"values are not known; got {context}"
        )
    if shape.sequence % context:
        raise ValueError(
            f"{owner}: context must divide the {shape.sequence} tokens of a sequence, got {context}"
        )


def _check_experts(owner: str, expert: int, workload: Workload) -> None:
    shape = workload.shape
    experts = None if shape is None else shape.architecture.experts
    if experts is None:
        raise ValueError(
            f"{owner}: expert must be 1 for workload {workload.name}, which has no experts; "
            f"got {expert}"
        )
    if experts.num_experts % expert:
        raise ValueError(
            f"{owner}: expert must divide the {experts.num_experts} experts of a layer of "
            f"{workload.name}, got {expert}"
        )
