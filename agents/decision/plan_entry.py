"""Plans as plain values, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

from agents.trainers.trainer import OuterExchange, outer_exchange_of
from des import (
    EVERY_STEP,
    DecoupledDiLoCo,
    DiLoCo,
    GradientExchange,
    Parallelism,
    Placement,
    Plan,
    StreamingDiLoCo,
    Topology,
)
from des.base.strict_forms import StrictForm, form_of
from des.plan.plan_texts import placement_text
from des.plan.synchronisation import Synchronisation

_MODES: Mapping[str, type] = {
    "diloco": DiLoCo,
    "streaming_diloco": StreamingDiLoCo,
    "decoupled_diloco": DecoupledDiLoCo,
}
"""Ways to exchange seldom, by `OuterExchange`."""


class PlanForm(StrictForm):
    """Fields of a plan: a text for each pipeline, see `Placement.parse`."""

    pipelines: list[str]
    shares: list[int]
    shares_domains: bool
    schedule: str
    sends: str
    parallelism: dict[str, dict[str, object]]
    exchange: dict[str, object]
    synchronisation: dict[str, object]
    activation_compression: float


def plan_entry(topology: Topology, plan: Plan) -> dict[str, object]:
    """Return a plan as plain values, of which `plan_from_entry` makes an equal one.

    Raises
    ------
    ValueError
        If its synchronisation is none of those of `des`.
    """
    names = tuple(topology.index_of)
    mode = plan.synchronisation
    kind = outer_exchange_of(mode)
    return {
        "pipelines": [placement_text(one, names) for one in plan.placements],
        "shares": list(plan.shares),
        "shares_domains": plan.shares_domains,
        "schedule": plan.schedule,
        "sends": plan.sends,
        "parallelism": {
            name: asdict(own) for name, own in zip(names, plan.parallelism, strict=False)
        },
        "exchange": _plain(asdict(plan.exchange)),
        "synchronisation": {"kind": kind} | _fields_of(mode),
        "activation_compression": float(plan.activation_compression),
    }


def _plain(fields: Mapping[str, Any]) -> dict[str, object]:
    """Fields with lists in place of tuples."""
    return {key: list(one) if isinstance(one, tuple) else one for key, one in fields.items()}


def _fields_of(mode: Synchronisation) -> dict[str, object]:
    """Fields of a way to keep replicas in step; none of that in every step."""
    if mode == EVERY_STEP:
        return {}
    if not isinstance(mode, tuple(_MODES.values())):
        raise ValueError(f"plan document: synchronisation must be one of des, got {mode!r}")
    return asdict(mode)  # type: ignore[call-overload, no-any-return]  # it is one of them


def _mode_of(content: Mapping[str, object]) -> Synchronisation:
    fields = dict(content)
    kind = fields.pop("kind", None)
    if kind == "every_step" and not fields:
        return EVERY_STEP
    if kind in _MODES:
        form = _MODES[str(kind)]
        found: Synchronisation = form(**dict(form_of(form).model_validate(fields)))
        return found
    raise ValueError(
        f"synchronisation: kind must be one of {', '.join(get_args(OuterExchange))}; got {kind!r}"
    )


def plan_from_entry(form: PlanForm, topology: Topology) -> Plan:
    """Make a plan on the domains of a world.

    Raises
    ------
    ValueError
        Naming the field, what is allowed and what came.
    """
    names = tuple(topology.index_of)
    if not form.pipelines:
        raise ValueError("plan.pipelines: must be at least one, got none")
    if form.parallelism and tuple(form.parallelism) != names:
        raise ValueError(
            f"plan.parallelism: must be of each of {', '.join(names)}, in this order, or of none; "
            f"got {', '.join(form.parallelism)}"
        )
    placements = [Placement.parse(text, names) for text in form.pipelines]
    return Plan(
        placement=placements[0],
        replicas=tuple(placements[1:]),
        shares=tuple(form.shares),
        shares_domains=form.shares_domains,
        schedule=form.schedule,
        sends=form.sends,  # type: ignore[arg-type]  # the plan checks it
        parallelism=tuple(
            Parallelism(**dict(form_of(Parallelism).model_validate(own)))
            for own in form.parallelism.values()
        ),
        exchange=GradientExchange(**dict(form_of(GradientExchange).model_validate(form.exchange))),
        synchronisation=_mode_of(form.synchronisation),
        activation_compression=form.activation_compression,
    )
