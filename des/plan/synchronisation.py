"""Synchronisation of replicas in different domains: times, messages, and delays.

Three modes: every step (data parallelism), every H steps (DiLoCo), and every H steps a part at a
time (Streaming DiLoCo). The all-reduce of a layer starts when the backward pass has made its
values, so every mode hides messages behind that pass, and Streaming DiLoCo with overlap behind
further whole steps [1]_. Latency and the arithmetic of the reduction are free.

Published in [1]_: H = 100, 3 layers a fragment, 4 bits for compressed values and 16 for others (the
400 of table 1 is 100 steps times 16 over 4). Usual: a backward pass takes twice a forward pass, so
2/3 of a step. A fit to table 4, which does not say it: one step of overlap, so 5/3 are hidden.

References
----------
.. [1] A. Douillard et al., "Streaming DiLoCo with overlapping communication", arXiv 2501.18512,
   2025, sections 2.3, 3.1 and 3.3, tables 1 and 4.
.. [2] A. Douillard et al., "DiLoCo: Distributed low-communication training of language models",
   arXiv 2311.08105, 2023, algorithm 1.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol, get_args

from des.base.checks import (
    MOST_ITEMS,
    require_count,
    require_fraction,
    require_one_of,
    require_positive,
)

BACKWARD_FRACTION = 2.0 / 3.0
"""Share of the backward pass in a step."""

OuterState = Literal["gpu", "cpu"]
"""Memory of the outer optimiser's state: that of the GPUs, or of their hosts, which is not counted.

The state is the outer momentum and a copy of the parameters as they were last synchronised.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedModel:
    """A model of equal layers, trained by replicas that each take ``step_time_s`` to compute."""

    num_parameters: float
    num_layers: int
    step_time_s: float
    num_replicas: int = 2

    def __post_init__(self) -> None:
        require_positive("replicated model", "num_parameters", self.num_parameters)
        require_count("replicated model", "num_layers", self.num_layers, MOST_ITEMS)
        require_positive("replicated model", "step_time_s", self.step_time_s)
        require_count("replicated model", "num_replicas", self.num_replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """Layers that are synchronised together, after step ``due_step`` (from 1) of each period."""

    layers: tuple[int, ...]
    due_step: int


class Synchronisation(Protocol):
    """A mode: how often each value is synchronised, in how many bits, and what that delays."""

    @property
    def steps_between(self) -> int:
        """Steps of a period, in which each fragment is synchronised once."""

    @property
    def overlap_steps(self) -> int:
        """Whole steps computed while a fragment is on its way; 0 means none."""

    @property
    def bits_per_value(self) -> float:
        """Bits of a gradient, or of a change of a parameter, on the wire."""

    @property
    def behind_backward(self) -> bool:
        """Whether messages of a step start after its backward pass; else when it is over."""

    @property
    def outer_state(self) -> OuterState:
        """Memory that holds the state of the outer optimiser, where there is one."""

    def __hash__(self) -> int:
        """Hash of the value: results are cached by mode."""

    def fragments(self, num_layers: int) -> tuple[Fragment, ...]:
        """Parts of the model, in the order in which they are synchronised."""

    def exposed_s(self, transfer_s: float, model: ReplicatedModel) -> float:
        """Delay of the training by one fragment whose messages take ``transfer_s``. [s]"""


def _require_outer_state(owner: str, value: str) -> None:
    require_one_of(owner, "outer_state", value, get_args(OuterState))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiLoCo:
    """All parameters after every ``steps_between`` steps, behind the backward pass of the last.

    With ``behind_backward`` False nothing hides the exchange: it starts when the last step is over,
    the optimiser's update included, as the algorithm has it [2]_.
    """

    steps_between: int = 100
    bits_per_value: float = 16.0
    behind_backward: bool = True
    outer_state: OuterState = "gpu"

    def __post_init__(self) -> None:
        require_count("DiLoCo", "steps_between", self.steps_between)
        require_positive("DiLoCo", "bits_per_value", self.bits_per_value)
        _require_outer_state("DiLoCo", self.outer_state)
        if not isinstance(self.behind_backward, bool):
            raise ValueError(
                f"DiLoCo: behind_backward must be True or False, got {self.behind_backward!r}"
            )
        if self.steps_between == 1 and not self.behind_backward:
            raise ValueError(
                "DiLoCo: behind_backward must be True where steps_between is 1, as gradients are "
                "summed up before the update; got False"
            )

    @property
    def overlap_steps(self) -> int:
        """None: the next step waits."""
        return 0

    def fragments(self, num_layers: int) -> tuple[Fragment, ...]:
        """One, of all layers."""
        return (Fragment(layers=tuple(range(num_layers)), due_step=self.steps_between),)

    def exposed_s(self, transfer_s: float, model: ReplicatedModel) -> float:
        """Part the backward pass does not hide: at least the layer whose values come last."""
        if not self.behind_backward:
            return transfer_s
        hidden_s = BACKWARD_FRACTION * model.step_time_s
        return max(transfer_s / model.num_layers, transfer_s - hidden_s)


EVERY_STEP = DiLoCo(steps_between=1)
"""Data parallelism: all gradients after every step, in BF16."""


def agree_every_step(mode: Synchronisation) -> bool:
    """Whether replicas have the sum of all gradients before every update."""
    return mode.steps_between == 1 and mode.overlap_steps == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingDiLoCo:
    """A fragment of the layers at a time, each after every ``steps_between`` steps.

    Fragments are strided (0, P, 2P, ... for P of them) and due at even intervals. What comes back
    is needed ``overlap_steps`` whole steps after the backward pass that made it.
    """

    steps_between: int = 100
    layers_per_fragment: int = 3
    overlap_steps: int = 1
    bits_per_value: float = 16.0
    outer_state: OuterState = "gpu"

    def __post_init__(self) -> None:
        _require_outer_state("Streaming DiLoCo", self.outer_state)
        require_count("Streaming DiLoCo", "steps_between", self.steps_between)
        require_count("Streaming DiLoCo", "layers_per_fragment", self.layers_per_fragment)
        if self.overlap_steps != 0:
            require_count("Streaming DiLoCo", "overlap_steps", self.overlap_steps)
        require_positive("Streaming DiLoCo", "bits_per_value", self.bits_per_value)

    @property
    def behind_backward(self) -> bool:
        """The messages of a fragment start as the backward pass makes its values."""
        return True

    def fragments(self, num_layers: int) -> tuple[Fragment, ...]:
        """As many as the layers need; where they do not divide, some are a layer short."""
        count = -(-num_layers // self.layers_per_fragment)
        return tuple(
            Fragment(
                layers=tuple(range(first, num_layers, count)),
                due_step=-(-(first + 1) * self.steps_between // count),
            )
            for first in range(count)
        )

    def exposed_s(self, transfer_s: float, model: ReplicatedModel) -> float:
        """Part that neither the backward pass nor the steps of overlap hide."""
        return max(0.0, transfer_s - (BACKWARD_FRACTION + self.overlap_steps) * model.step_time_s)


def all_reduce_bytes(num_values: float, bits_per_value: float, num_replicas: int) -> float:
    """Bytes that each replica sends (and receives) in one all-reduce of a ring. [bytes]

    ``2 (R - 1) / R`` times the buffer: the least that any all-reduce can do with [1]_.

    References
    ----------
    .. [1] P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
       workstations", J. Parallel Distrib. Comput. 69(2), 2009.

    Examples
    --------
    >>> all_reduce_bytes(1e9, 16.0, 2)
    2000000000.0
    """
    return 2.0 * (num_replicas - 1) / num_replicas * num_values * bits_per_value / 8.0


@lru_cache(maxsize=4096)
def fragments_due(mode: Synchronisation, step: int, num_layers: int) -> tuple[Fragment, ...]:
    """Fragments whose synchronisation starts at the end of a step; steps count from 0.

    Examples
    --------
    >>> [fragment.layers for fragment in fragments_due(StreamingDiLoCo(steps_between=4), 1, 6)]
    [(0, 2, 4)]
    """
    if step < 0:
        raise ValueError(f"synchronisation: step must be at least 0, got {step!r}")
    return tuple(
        fragment
        for fragment in mode.fragments(num_layers)
        if (step + 1 - fragment.due_step) % mode.steps_between == 0
    )


def exposed_s_per_step(
    mode: Synchronisation,
    model: ReplicatedModel,
    bandwidth_bytes_per_s: float,
    latency_s: float = 0.0,
) -> float:
    """Mean time a step by which communication delays the training. [s]

    Each exchange takes ``latency_s`` besides its bytes. Each fragment delays by itself, and all
    together at least by what does not fit into the compute time of a period: no time hides two
    messages of one wire.
    """
    require_positive("synchronisation", "bandwidth_bytes_per_s", bandwidth_bytes_per_s)
    num_bytes = all_reduce_bytes(model.num_parameters, mode.bits_per_value, model.num_replicas)
    whole_s = num_bytes / bandwidth_bytes_per_s
    exposed_s = math.fsum(
        mode.exposed_s(whole_s * (len(fragment.layers) / model.num_layers) + latency_s, model)
        for fragment in mode.fragments(model.num_layers)
    )
    period_s = mode.steps_between * model.step_time_s
    return max(exposed_s, whole_s - period_s) / mode.steps_between


def compute_utilisation(
    mode: Synchronisation,
    model: ReplicatedModel,
    bandwidth_bytes_per_s: float,
    latency_s: float = 0.0,
) -> float:
    """Share of the time in which the replicas compute; the rest is exposed communication.

    Examples
    --------
    >>> model = ReplicatedModel(num_parameters=1e9, num_layers=10, step_time_s=3.0)
    >>> compute_utilisation(EVERY_STEP, model, 4e8)  # 5 s, of which the backward pass hides 2
    0.5
    """
    exposed_s = exposed_s_per_step(mode, model, bandwidth_bytes_per_s, latency_s)
    return model.step_time_s / (model.step_time_s + exposed_s)


def lowest_bandwidth_bytes_per_s(
    mode: Synchronisation,
    model: ReplicatedModel,
    utilisation: float,
    candidates_bytes_per_s: Iterable[float],
) -> float | None:
    """Least of the candidates that reaches a compute utilisation; None if none does. [bytes/s]"""
    require_fraction("synchronisation", "utilisation", utilisation)
    reaching = (
        bandwidth
        for bandwidth in candidates_bytes_per_s
        if compute_utilisation(mode, model, bandwidth) >= utilisation
    )
    return min(reaching, default=None)
