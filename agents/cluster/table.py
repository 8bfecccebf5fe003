"""Table of the policies of the cluster: one row each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from agents.cluster.admission import AcceptAll, LoadThreshold, Quota
from agents.cluster.elastic import Optimus, Pollux
from agents.cluster.fair_share import FairShare
from agents.cluster.gavel import Gavel
from agents.cluster.key_orderings import (
    Fifo,
    FinishTimeFairness,
    GpuIntensity,
    HighestLoss,
    HighestPriority,
    LeastAttained,
    LeastRemainingWork,
    ReportedRemaining,
    ShortestJob,
    ShortestRemaining,
)
from agents.cluster.look_ahead import LookAheadAdmission
from agents.cluster.placing import (
    BestFit,
    Consolidated,
    FirstFree,
    Packed,
    Scattered,
    UnitPlacing,
)
from agents.cluster.preempting import MakeRoom, OneUnit, WorstFirst
from agents.cluster.tiresias import Queues2dLas, QueuesGittins
from des.base.checks import nearest, require_known
from des.base.lazy import lazy_imports
from des.cluster.policy import Admission, Ordering, Placing, Policy, Preempting

with lazy_imports(__name__):
    from agents.cluster import learnt_ordering

Maker = TypeVar("Maker")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySetting:
    """Settings that policies are made with.

    Attributes
    ----------
    quantum_s
        Time between decisions that may preempt; None: the default of each ordering. [s]
    sample_gpu_s
        GPU seconds of a sample of jobs, for orderings that learn from it.
    quota_gpus
        GPUs of tenants; a tenant without has an equal part.
    checkpoint
        Policy for orderings that are trained.
    """

    quantum_s: float | None = None
    sample_gpu_s: tuple[float, ...] = (3600.0,)
    quota_gpus: Mapping[str, float] = field(default_factory=dict)
    checkpoint: Path | None = None

    def make(self, kind: Callable[..., Ordering], **own: object) -> Ordering:
        """Make an ordering with the quantum that is given, else with its kind's own."""
        if self.quantum_s is not None:
            own["quantum_s"] = self.quantum_s
        return kind(**own)


class _Row(NamedTuple, Generic[Maker]):
    """A part of a policy: its maker and its line of help."""

    make: Maker
    about: str


def _learn(setting: PolicySetting) -> Ordering:
    """Ordering of a checkpoint.

    Raises
    ------
    ValueError
        If none is given, or the file is none of a training of queues.
    """
    if setting.checkpoint is None:
        raise ValueError(
            "ordering ppo: checkpoint must be given, the file of a training of queues, got none"
        )
    network = learnt_ordering.trained_ordering_network(setting.checkpoint)
    return setting.make(learnt_ordering.LearntOrdering, network=network)


def _paced(kind: Callable[..., Ordering]) -> Callable[[PolicySetting], Ordering]:
    return lambda setting: setting.make(kind)


ORDERINGS: Mapping[str, _Row[Callable[[PolicySetting], Ordering]]] = MappingProxyType(
    {
        "fifo": _Row(lambda _: Fifo(), "first come, first served; a blocked head blocks all"),
        "fifo_backfill": _Row(
            lambda _: Fifo(backfills=True), "fifo; others pass where they do not delay it (EASY)"
        ),
        "sjf": _Row(lambda _: ShortestJob(), "shortest job first, nothing is suspended"),
        "srtf": _Row(_paced(ShortestRemaining), "shortest remaining time first"),
        "srtf_reported": _Row(
            _paced(ReportedRemaining),
            "shortest remaining time first, by the throughput that jobs report",
        ),
        "loss": _Row(_paced(HighestLoss), "highest reported loss over a job's first"),
        "srsf": _Row(_paced(LeastRemainingWork), "fewest remaining GPU seconds first"),
        "las": _Row(_paced(LeastAttained), "least attained service first"),
        "tiresias": _Row(_paced(Queues2dLas), "queues of attained GPU seconds"),
        "gittins": _Row(
            lambda setting: setting.make(QueuesGittins, sample_gpu_s=setting.sample_gpu_s),
            "queues by Gittins index, from a sample of jobs",
        ),
        "optimus": _Row(_paced(Optimus), "GPUs of elastic jobs by remaining time, fitted speeds"),
        "pollux": _Row(_paced(Pollux), "GPUs of elastic jobs by goodput"),
        "gavel": _Row(_paced(Gavel), "max-min shares of time by linear program"),
        "gavel_ftf": _Row(
            _paced(partial(Gavel, is_fair_finish=True)),
            "shares of time of the best worst finish-time fairness",
        ),
        "themis": _Row(_paced(FinishTimeFairness), "worst finish-time fairness first, in leases"),
        "crux": _Row(_paced(GpuIntensity), "highest GPU intensity first"),
        "priority": _Row(_paced(HighestPriority), "highest priority first"),
        "ppo": _Row(
            _learn, "weights of remaining time, GPUs, attained time and age, by a trained network"
        ),
        "fair_share": _Row(
            lambda setting: setting.make(FairShare, quota_gpus=setting.quota_gpus),
            "quotas of tenants, with borrowing and reclaim",
        ),
    }
)
"""Orderings by name."""


def _placing(kind: type[UnitPlacing]) -> Callable[[str, bool], Placing]:
    return lambda level, is_required: kind(level=level, is_required=is_required)


PLACINGS: Mapping[str, _Row[Callable[[str, bool], Placing]]] = MappingProxyType(
    {
        "first_free": _Row(_placing(FirstFree), "first free GPUs in the order of nodes"),
        "scattered": _Row(_placing(Scattered), "as few GPUs of each node as possible"),
        "best_fit": _Row(_placing(BestFit), "tightest node, else as few nodes as possible"),
        "consolidated": _Row(_placing(Consolidated), "fewest nodes, and wait for them"),
        "packed": _Row(_placing(Packed), "fill up nodes in use, keep whole ones free"),
    }
)
"""Placings by name; each takes a level and whether that is required."""

PREEMPTIONS: Mapping[str, _Row[Callable[[], Preempting | None]]] = MappingProxyType(
    {
        "worst_first": _Row(WorstFirst, "jobs from the end of the order"),
        "one_unit": _Row(OneUnit, "jobs of the node or unit that is cheapest to free"),
        "make_room": _Row(MakeRoom, "move jobs elsewhere, suspend none"),
        "never": _Row(lambda: None, "no running job gives way"),
    }
)
"""Rules of preemption by name."""

ADMISSIONS: Mapping[str, str] = MappingProxyType(
    {
        "accept_all": "every job",
        "load_X": "while the demand is at most X times the GPUs, such as load_1.2",
        "quota_N": "while a tenant wants at most N GPUs, or its own quota",
        "look_ahead": "the best of accept_all, load_1.2 and load_1.4, simulated every hour",
    }
)
"""Admissions by name, with what each admits."""

_CANDIDATES = ("accept_all", "load_1.2", "load_1.4")

BLOX_ORDERINGS: Mapping[str, Callable[[], Ordering]] = MappingProxyType(
    {
        "fifo": Fifo,
        "las": LeastAttained,
        "tiresias": LeastAttained,
        "srtf": ShortestRemaining,
        "optimus": ShortestRemaining,
    }
)
"""Orderings by the names that Blox has for them; its Tiresias is LAS, its Optimus SRTF."""


def admission_named(
    name: str, setting: PolicySetting, policy_with: Callable[[Admission], Policy]
) -> Admission:
    """Make an admission by its name.

    Raises
    ------
    ValueError
        If there is no such name, or its number is wrong.
    """
    kind, _, number = name.partition("_")
    if name == "accept_all":
        return AcceptAll()
    if name == "look_ahead":
        candidates = {one: admission_named(one, setting, policy_with) for one in _CANDIDATES}
        return LookAheadAdmission(candidates=candidates, policy_with=policy_with)
    try:
        if kind == "load":
            return LoadThreshold(threshold=float(number))
        if kind == "quota":
            gpus_of = {tenant: int(gpus) for tenant, gpus in setting.quota_gpus.items()}
            return Quota(gpus_of=gpus_of, of_others=int(number))
    except ValueError as error:
        raise ValueError(f"admission {name}: must end in a number, got {number!r}") from error
    raise ValueError(f"unknown admission {name!r}; {nearest(name, tuple(ADMISSIONS))}")


def policy_named(
    ordering: str,
    *,
    placing: str = "first_free",
    admission: str = "accept_all",
    preempting: str = "worst_first",
    level: str = "",
    is_level_required: bool = False,
    setting: PolicySetting | None = None,
) -> Policy:
    """Put a policy together by the names of its parts.

    Raises
    ------
    ValueError
        If a part has no such name; the message hints at one.
    """
    setting = setting or PolicySetting()
    for what, name, table in (
        ("ordering", ordering, ORDERINGS),
        ("placing", placing, PLACINGS),
        ("preemption", preempting, PREEMPTIONS),
    ):
        require_known(f"unknown {what}", name, table)

    def policy_with(chosen: Admission) -> Policy:
        return Policy(
            admission=chosen,
            ordering=ORDERINGS[ordering].make(setting),
            placing=PLACINGS[placing].make(level, is_level_required),
            preempting=PREEMPTIONS[preempting].make(),
        )

    return policy_with(admission_named(admission, setting, policy_with))
