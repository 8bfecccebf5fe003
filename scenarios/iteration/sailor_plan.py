"""Plans of Sailor's planner: replicas of stages on zones, laid over the sites of a world.

The form is that of ``plan_config_*.json`` and of the planner's results in its repository
(eth-easl/sailor, ``sailor/Planner``): of each stage its layers, and of each replica of it the
machines and the tensor parallelism. Numbers of layers count the embedding as the first and the head
as the last one. The schedule is 1F1B with sends that wait.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, ValidationError

from des import Parallelism, Placement, Plan, Topology
from des.base.strict_forms import FROM_LIST, StrictForm, first_error
from des.plan.parallelism import UNSHARED

_Key = tuple[str, str]
"""GPU and zone of machines."""

_Machine = Annotated[tuple[str, int, str], FROM_LIST]
"""GPU, GPUs of a machine, and zone."""

_Replica = Annotated[tuple[list[_Machine], int], FROM_LIST]
"""Machines of a replica of a stage, and their tensor parallelism."""

_Path = tuple[tuple[int, int], ...]
"""Domain and tensor parallelism of each stage of a replica."""


class _PipelineForm(StrictForm):
    num_stages: int
    layers_per_stage: list[list[int]]
    tmp_per_stage: list[list[_Replica]]
    dp: list[int]


class _PlanForm(StrictForm):
    """A plan; what was measured or estimated of it, and other notes, are not looked at."""

    pipeline_list: list[_PipelineForm]
    mbs: int = Field(ge=1)
    gbs: int | None = Field(default=None, ge=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SailorPlan:
    """A plan as it is written.

    ``replicas`` are machines and tensor parallelism of each stage of each replica.
    """

    stage_layers: tuple[int, ...]
    replicas: tuple[tuple[tuple[_Key, int], ...], ...]
    micro_batch_size: int
    global_batch_size: int | None


def is_sailor(content: object) -> bool:
    """Whether plain values are meant to be a plan of Sailor."""
    return isinstance(content, Mapping) and "pipeline_list" in content


def read_sailor(content: object) -> SailorPlan:
    """Read a plan.

    Raises
    ------
    ValueError
        Naming the field, what is allowed and what came.
    """
    assert isinstance(content, Mapping)
    known = {key: content[key] for key in _PlanForm.model_fields if key in content}
    try:
        form = _PlanForm.model_validate(known)
    except ValidationError as error:
        raise ValueError(first_error(error)) from error
    if len(form.pipeline_list) != 1:
        raise ValueError(f"pipeline_list: must hold one pipeline, got {len(form.pipeline_list)}")
    own = form.pipeline_list[0]
    for field in ("layers_per_stage", "tmp_per_stage", "dp"):
        if len(getattr(own, field)) != own.num_stages or own.num_stages < 1:
            raise ValueError(
                f"{field}: must be of each of num_stages {own.num_stages}, at least one; "
                f"got {len(getattr(own, field))}"
            )
    counts = [len(stage) for stage in own.tmp_per_stage]
    if set(own.dp) != {own.dp[0]} or counts != own.dp or own.dp[0] < 1:
        raise ValueError(
            "dp: must be the replicas of tmp_per_stage, equally many in all stages and at least "
            f"one; got {own.dp} and {counts}"
        )
    return SailorPlan(
        stage_layers=tuple(map(len, own.layers_per_stage)),
        replicas=tuple(
            tuple(_machines(stage[replica]) for stage in own.tmp_per_stage)
            for replica in range(own.dp[0])
        ),
        micro_batch_size=form.mbs,
        global_batch_size=form.gbs,
    )


def _machines(entry: _Replica) -> tuple[_Key, int]:
    machines, tensor = entry
    keys = {(gpu, zone) for gpu, _, zone in machines}
    if len(keys) != 1 or tensor < 1:
        raise ValueError(
            "tmp_per_stage: a replica of a stage must have machines of one GPU in one zone and a "
            f"tensor parallelism of at least 1; got {sorted(keys)} and {tensor}"
        )
    return keys.pop(), tensor


def sailor_plan(
    read: SailorPlan, topology: Topology, sites: Sequence[int] | None, num_layers: int
) -> tuple[Plan, int]:
    """Return the plan on the sites of a world, and the data ranks of a stage in each.

    Without ``sites`` each zone is the site of its name, or of its name behind that of its GPU, as
    in ``A100-40_us-central1-a``; with them the pairs of zone and GPU are these sites, in the order
    in which they come up.

    Raises
    ------
    ValueError
        If layers are not those of the model, a zone is no site, or replicas cannot be said as
        pipelines of sites of their own.
    """
    layers = _own_layers(read.stage_layers, num_layers)
    domain_of = _domains(read, topology, sites)
    paths: Counter[_Path] = Counter(
        tuple((domain_of[key], tensor) for key, tensor in replica) for replica in read.replicas
    )
    if len(set(paths.values())) > 1:
        raise ValueError(
            "tmp_per_stage: replicas of each path through the sites must be equally many; "
            f"got {sorted(paths.values())}"
        )
    data = max(paths.values())
    parallelism = _parallelism(paths, topology, data)
    placements = [
        Placement.of_stages(
            [(domain, count) for (domain, _), count in zip(path, layers, strict=True)]
        )
        for path in paths
    ]
    plan = Plan(
        placement=placements[0],
        replicas=tuple(placements[1:]),
        parallelism=parallelism,
        sends="blocking",
    )
    return plan, data


def _parallelism(paths: Iterable[_Path], topology: Topology, data: int) -> tuple[Parallelism, ...]:
    """Division of each domain, through which one path of replicas leads."""
    parallelism = [UNSHARED] * topology.num_domains
    for path in paths:
        for domain in dict.fromkeys(domain for domain, _ in path):
            degrees = [tensor for where, tensor in path if where == domain]
            if len(set(degrees)) > 1 or parallelism[domain] != UNSHARED:
                raise ValueError(
                    f"tmp_per_stage: {topology.domains[domain].name} must have one tensor "
                    f"parallelism, and one path of replicas through it; got tensor {degrees}"
                )
            parallelism[domain] = Parallelism(tensor=degrees[0], data=data, pipeline=len(degrees))
    return tuple(parallelism)


def _own_layers(counts: Sequence[int], num_layers: int) -> tuple[int, ...]:
    """Layers of each stage, without embedding and head."""
    found = list(counts)
    if sum(found) == num_layers + 2:
        found[0] -= 1
        found[-1] -= 1
    if sum(found) != num_layers or min(found) < 1:
        raise ValueError(
            f"layers_per_stage: must be the {num_layers} layers of the model, or {num_layers + 2} "
            f"with embedding and head, at least one a stage without these; got {list(counts)}"
        )
    return tuple(found)


def _domains(read: SailorPlan, topology: Topology, sites: Sequence[int] | None) -> dict[_Key, int]:
    keys = list(dict.fromkeys(key for replica in read.replicas for key, _ in replica))
    if sites is not None:
        if len(sites) != len(keys):
            each = ", ".join("_".join(key) for key in keys)
            raise ValueError(
                f"--sites must name one site for each of {each}, in this order; got {len(sites)}"
            )
        return dict(zip(keys, sites, strict=True))
    found = {}
    for gpu, zone in keys:
        name = next((one for one in (zone, f"{gpu}_{zone}") if one in topology.index_of), None)
        if name is None:
            raise ValueError(
                f"tmp_per_stage: zone {zone} must be a site of the network, "
                f"{', '.join(topology.index_of)}, or be mapped to one by --sites; got {gpu} there"
            )
        found[gpu, zone] = topology.index_of[name]
    if len(set(found.values())) < len(found):
        raise ValueError(
            "tmp_per_stage: a site must have GPUs of one kind; got several in one zone, which "
            "sites such as A100-40_us-central1-a or --sites keep apart"
        )
    return found
