"""Limits of a trainer: schedules, degrees, layers, replicas and precisions, as one value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from des.base.lazy import lazy_imports
from des.job.precision import Precision
from des.job.transformer import GradientPrecision, Recomputation
from des.plan.parallelism import Sharding

with lazy_imports(__name__):
    from des.plan import decoupled, synchronisation
    from des.plan.plan import Sends
    from des.plan.synchronisation import Synchronisation
    from des.schedules import registry

HostOrder = Literal["stage", "replica"]
"""Part of a job that hosts with consecutive ranks form: a stage of all replicas, or a replica."""

OuterExchange = Literal["every_step", "diloco", "streaming_diloco", "decoupled_diloco"]
"""Exchange between replicas: of gradients in every step, or of changes every few steps, of all
layers at once, a fragment at a time, or of those that have reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainer:
    """A program that trains a model, and its limits; defaults are those of a trainer without any.

    Attributes
    ----------
    source
        Repository, revision and files that the facts are from.
    schedules
        Schedules that it runs, without their factors; empty: all.
    factored_schedules
        Those of them whose factor, such as ``_2x``, can be set.
    blocking_schedules
        Schedules under which a send holds its worker up, see `Plan.sends`.
    whole_groups
        Whether interleaving needs a last group of as many microbatches as devices, or none left.
    equal_degrees
        Whether tensor, data, context, expert degree and sharding are one for all stages, and so
        are stages a device; layers of a stage are then the same in all replicas of one launch.
    has_context
        Whether GPUs can divide a sequence among them.
    uneven_layers
        Whether stages may have any numbers of layers.
    ends_are_layers
        Whether embedding and head are layers of their own where layers are divided evenly.
    equal_shares
        Whether all replicas do equally many microbatches, of whole sequences a data rank.
    host_orders
        Orders of ranks over hosts that it offers; empty: any.
    replicas_apart
        Whether replicas that exchange every few steps are launches of their own.
    bits
        Bits of a value in an outer exchange; empty: any.
    exchanges_behind_backward
        Whether an outer exchange of all layers starts after the last backward pass, and not when
        the step is over.
    precisions
        Formats in which linear layers multiply.
    gradient_precisions
        Types in which gradients are kept and summed up, the default first.
    sharding, pipeline_sharding
        State that can be sharded over data ranks, without a pipeline and in one.
    chooses_ways
        Whether trees between replicas, pipelines that share a domain, and compressed activations
        can be had.
    uses_nccl
        Whether its GPUs send to each other over NCCL; else torch's gloo.
    is_ideal
        A domain is one perfect device: a plan says nothing about its GPUs.
    """

    name: str
    title: str
    source: str
    schedules: tuple[str, ...] = ()
    factored_schedules: tuple[str, ...] = ()
    blocking_schedules: tuple[str, ...] = ()
    whole_groups: bool = False
    equal_degrees: bool = False
    has_context: bool = True
    uneven_layers: bool = True
    ends_are_layers: bool = False
    equal_shares: bool = False
    host_orders: tuple[HostOrder, ...] = ()
    replicas_apart: bool = False
    synchronisations: tuple[OuterExchange, ...] = get_args(OuterExchange)
    bits: tuple[float, ...] = ()
    exchanges_behind_backward: bool = True
    precisions: tuple[Precision, ...] = get_args(Precision)
    gradient_precisions: tuple[GradientPrecision, ...] = ("bf16", "fp32")
    sharding: tuple[Sharding, ...] = ("none", "optimiser", "gradients", "parameters")
    pipeline_sharding: tuple[Sharding, ...] = ("none", "optimiser", "gradients", "parameters")
    recomputations: tuple[Recomputation, ...] = ("flash", "none", "selective", "full")
    chooses_ways: bool = False
    uses_nccl: bool = True
    is_ideal: bool = False

    @property
    def gradient_precision(self) -> GradientPrecision:
        """Type of gradients by default."""
        return self.gradient_precisions[0]

    def runs_schedule(self, name: str) -> bool:
        """Whether a schedule, with the factor in its name, is one of the trainer's.

        Raises
        ------
        ValueError
            If there is no such schedule at all.
        """
        factor = registry.schedule_named(name)[1]
        if not self.schedules:
            return True
        base = base_schedule(name)
        return base in (self.schedules if factor is None else self.factored_schedules)

    def require_schedules(self, names: Iterable[str]) -> None:
        """Refuse schedules that there are not, or that the trainer does not run.

        Raises
        ------
        ValueError
            Naming those that it runs.
        """
        for name in names:
            try:
                runs = self.runs_schedule(name)
            except ValueError:
                runs = False
            if not runs:
                known = self.schedules or tuple(registry.SCHEDULES)
                raise ValueError(
                    f"--trainer {self.name}: schedules must be some of {', '.join(known)}; "
                    f"got {name!r}"
                )

    def require_precision(self, precision: Precision) -> None:
        """Refuse a format of passes that the trainer does not have.

        Raises
        ------
        ValueError
            Naming those that it has.
        """
        if precision not in self.precisions:
            allowed = ", ".join(self.precisions)
            raise ValueError(
                f"trainer {self.name}: precision must be one of {allowed}; got {precision}"
            )

    def sends_under(self, schedule: str) -> Sends:
        """Whether workers wait for what they send under a schedule."""
        return "blocking" if base_schedule(schedule) in self.blocking_schedules else "overlapped"


def base_schedule(name: str) -> str:
    """Name of a schedule without its factor.

    Examples
    --------
    >>> base_schedule("interleaved_1f1b_1.5x"), base_schedule("zb_h1")
    ('interleaved_1f1b', 'zb_h1')
    """
    factor = registry.schedule_named(name)[1]
    return name if factor is None else name.rpartition("_")[0]


def outer_exchange_of(mode: Synchronisation) -> OuterExchange:
    """Kind of an exchange between replicas.

    Examples
    --------
    >>> from des import EVERY_STEP, StreamingDiLoCo
    >>> outer_exchange_of(EVERY_STEP), outer_exchange_of(StreamingDiLoCo())
    ('every_step', 'streaming_diloco')
    """
    if synchronisation.agree_every_step(mode):
        return "every_step"
    if isinstance(mode, decoupled.DecoupledDiLoCo):
        return "decoupled_diloco"
    return "streaming_diloco" if isinstance(mode, synchronisation.StreamingDiLoCo) else "diloco"
