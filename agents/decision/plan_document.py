"""Plans as documents of plain values, and back: equal to the last bit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from pydantic import Field, ValidationError

from agents.decision.bound_plan import BoundPlan, server_counts
from agents.decision.plan_entry import PlanForm, plan_entry, plan_from_entry
from agents.decision.profile_entry import (
    ProfileForm,
    profile_entries,
    with_profile_forms,
    without_profiles,
)
from agents.trainers.plan_checks import domains_in_use
from des import ARCHITECTURES, Corrections, Topology, Workload
from des.base.strict_forms import StrictForm, first_error, form_of
from des.job.architecture import Architecture
from des.job.architecture_files import from_own_fields
from des.job.models import architecture_named, build_workload
from des.plan.parallelism import UNSHARED
from des.plan.transport_law import TransportLaw
from des.world.files.topology_writer import topology_entry
from des.world.files.topology_yaml import topology_of

FORMAT = "eastwest-plan"
VERSION = 1


class _JobForm(StrictForm):
    """A model by its name or with the fields of its architecture, and a step of it."""

    model: str
    architecture: dict[str, object] | None = None
    num_layers: int
    sequences: int
    sequence_length: int
    microbatch_size: int
    recomputation: str
    gradient_precision: str
    attention: str | None = None
    precision: str = "bf16"


class _DocumentForm(StrictForm):
    """All of a document; ``sites`` follow from the rest, and are for readers, as is ``answer``."""

    format: str
    version: int
    trainer: str
    step_s: float
    corrections: dict[str, object]
    job: _JobForm
    plan: PlanForm
    sites: list[dict[str, object]]
    world: dict[str, object]
    profiles: dict[str, ProfileForm] = Field(default_factory=dict)
    routing_latencies_s: list[float] | None = None
    answer: dict[str, object] | None = None


def is_document(content: object) -> bool:
    """Whether plain values are meant to be such a document."""
    return isinstance(content, Mapping) and content.get("format") == FORMAT


def write_document(bound: BoundPlan) -> dict[str, object]:
    """Return a plan as plain values, which JSON keeps to the last bit.

    Raises
    ------
    ValueError
        If the world or the workload holds what a document does not, such as a moving link.
    """
    still = without_profiles(bound.topology)
    latencies_s = still.routing_latencies_s
    document: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "trainer": bound.trainer,
        "step_s": bound.step_s,
        "job": _job_entry(bound.workload),
        "sites": _sites(bound),
        "plan": plan_entry(bound.topology, bound.plan),
        "corrections": bound.corrections.plain(),
        "world": topology_entry(replace(still, routing_latencies_s=None)),
        "profiles": profile_entries(bound.topology),
        "routing_latencies_s": None if latencies_s is None else list(latencies_s),
    }
    if read_document(document) != bound:
        raise ValueError("plan document: the plan must be equal when read again, got another one")
    return document


def read_document(content: object) -> BoundPlan:
    """Make the plan of a document that `write_document` wrote.

    Raises
    ------
    ValueError
        Naming the field, what is allowed and what came; also if ``sites`` are not those of the
        plan, or the trainer cannot run it.
    """
    try:
        form = _DocumentForm.model_validate(content)
        if (form.format, form.version) != (FORMAT, VERSION):
            raise ValueError(
                f"format and version must be {FORMAT} {VERSION}; got {form.format} {form.version}"
            )
        topology = _world_of(form)
        bound = BoundPlan(
            topology=topology,
            workload=_workload_of(form.job),
            plan=plan_from_entry(form.plan, topology),
            trainer=form.trainer,
            step_s=form.step_s,
            corrections=_corrections_of(form.corrections),
        )
    except ValidationError as error:
        raise ValueError(first_error(error)) from error
    _check_sites(form.sites, _sites(bound))
    return bound


def _world_of(form: _DocumentForm) -> Topology:
    topology = with_profile_forms(topology_of(form.world), form.profiles)
    if form.routing_latencies_s is None:
        return topology
    if len(form.routing_latencies_s) != len(topology.links):
        raise ValueError(
            f"routing_latencies_s: must be one for each of {len(topology.links)} directions of "
            f"links; got {len(form.routing_latencies_s)}"
        )
    return replace(topology, routing_latencies_s=tuple(form.routing_latencies_s))


def _check_sites(
    sites: Sequence[Mapping[str, object]], needed: Sequence[Mapping[str, object]]
) -> None:
    """Refuse sites other than those of the plan, naming the first difference."""
    for given, own in zip(sites, needed, strict=False):
        for key in sorted({*given, *own}):
            if given.get(key) != own.get(key):
                raise ValueError(
                    f"sites: {key} of {own['name']} must be that of the plan, {own.get(key)!r}; "
                    f"got {given.get(key)!r}"
                )
    if len(sites) != len(needed):
        raise ValueError(f"sites: must be the {len(needed)} that hold layers, got {len(sites)}")


def _job_entry(workload: Workload) -> dict[str, object]:
    shape = workload.shape
    if shape is None or shape.batch_size != int(shape.batch_size):
        raise ValueError(f"plan document: workload {workload.name} must be one of build_workload")
    size, architecture = int(shape.batch_size), shape.architecture
    entry: dict[str, object] = {"model": architecture.name}
    if ARCHITECTURES.get(architecture.name) != architecture:
        fields = asdict(architecture)
        del fields["name"]
        entry["architecture"] = fields
    return entry | {
        "num_layers": workload.num_layers,
        "sequences": workload.num_microbatches * size,
        "sequence_length": shape.sequence,
        "microbatch_size": size,
        "recomputation": shape.recomputation,
        "gradient_precision": workload.gradient_precision,
        **({} if shape.attention is None else {"attention": shape.attention}),
        **({} if workload.precision == "bf16" else {"precision": workload.precision}),
    }


def _workload_of(form: _JobForm) -> Workload:
    own: Architecture = (
        architecture_named(form.model)
        if form.architecture is None
        else from_own_fields(form.architecture, form.model)
    )
    if form.microbatch_size < 1 or form.sequences % form.microbatch_size:
        raise ValueError(
            f"job: microbatch_size must divide the {form.sequences} sequences, "
            f"got {form.microbatch_size}"
        )
    return build_workload(
        own,
        num_layers=form.num_layers,
        num_microbatches=form.sequences // form.microbatch_size,
        microbatch_size=form.microbatch_size,
        sequence_length=form.sequence_length,
        recomputation=form.recomputation,
        gradient_precision=form.gradient_precision,
        attention=form.attention,
        precision=form.precision,
    )


def _sites(bound: BoundPlan) -> list[dict[str, object]]:
    """Servers, degrees, stages and GPUs of each domain in use, in the order of the model."""
    found = []
    for index in domains_in_use(bound.plan):
        domain = bound.topology.domains[index]
        servers, per_server = server_counts(domain)
        own = bound.plan.parallelism[index] if bound.plan.parallelism else UNSHARED
        found.append(
            {
                "name": domain.name,
                "servers": servers,
                "gpus_per_server": per_server,
                "assumed": domain.nodes is None,
                **{
                    degree: getattr(own, degree)
                    for degree in ("tensor", "data", "pipeline", "context", "expert")
                },
                **({"whole_experts": True} if own.whole_experts else {}),
                "microbatch_size": bound.rank_sequences(index),
                "stages": list(_stages(bound, index)),
            }
        )
    return found


def _stages(bound: BoundPlan, domain: int) -> Iterator[dict[str, object]]:
    """Stages of a domain, each with its layers and GPUs."""
    for replica, stages in enumerate(bound.plan.stages_of_replicas):
        for stage in stages:
            if stage.domain == domain:
                yield {
                    "replica": replica,
                    "stage": stage.index,
                    "first_layer": stage.first_layer,
                    "num_layers": stage.num_layers,
                    "gpus": list(bound.gpus_of(domain, stage.device)),
                }


def _corrections_of(content: Mapping[str, object]) -> Corrections:
    parts = (("transport", TransportLaw),)
    form: Any = form_of(Corrections, parts=parts).model_validate(content)
    law = None if form.transport is None else TransportLaw(**dict(form.transport))
    return Corrections(**(dict(form) | {"transport": law}))
