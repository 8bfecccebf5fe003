"""Result of one simulated iteration."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, Literal, NamedTuple

from des.base.extras import require_extra
from des.base.frames import frame_to_xarray
from des.base.lazy import lazy_imports
from des.costs.memory import DomainMemory
from des.program.program import Program

with lazy_imports(__name__):
    import networkx as nx
    import pandas as pd

Table = Literal["stages", "links", "memory", "spans", "transfers"]
"""Tables that a result can be turned into."""

_AXES = {
    "stages": ["stage"],
    "links": ["source", "target"],
    "memory": ["domain"],
    "spans": ["stage", "kind", "microbatch"],
}
"""Columns of tables that name a row, so that they can be axes of arrays."""


def columns_of(rows: Sequence[object], names: Sequence[str]) -> dict[str, list[Any]]:
    """Return attributes of rows, each as a column."""
    return {name: [getattr(row, name) for row in rows] for name in names}


class Span(NamedTuple):
    """One pass of one stage over one microbatch, from ``start_s`` to ``end_s``."""

    stage: int
    kind: str
    microbatch: int
    start_s: float
    end_s: float


class Transfer(NamedTuple):
    """One message on one link: it holds the wire from start to end, then it flies.

    Where links are shared fairly, start to end is the time from hand-over to the last byte, and
    messages of one link overlap. They do also where each has the link to itself.

    The time on the wire includes the overhead of a message, if calibration found one. ``link`` is
    the position in the topology's links, ``stage`` the sender, ``kind`` the pass that made the
    message: ``F`` an activation, ``B`` its gradient; ``G`` is a part of the sum of gradients (of
    parameters) over the replicas, in which ``microbatch`` counts the
    buckets; ``M`` is the model state of a layer that moves (see `des.program.moves`), and ``N`` the
    notice that ``stage`` has posted a receive.
    """

    link: int
    stage: int
    kind: str
    microbatch: int
    start_s: float
    end_s: float
    arrival_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StageUse:
    """Times of one stage within the iteration; busy and idle add up to the makespan."""

    domain: str
    device: int
    first_layer: int
    num_layers: int
    busy_s: float
    idle_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkUse:
    """Messages that one link direction carried, and how long they (and overheads) kept it busy.

    Where every message has the link to itself (``Transport.sharing`` none), ``busy_s`` is the sum
    of their times on the wire, which overlap: it may exceed the makespan. [s]
    """

    source: str
    target: str
    num_messages: int
    num_bytes: float
    busy_s: float


@dataclass(frozen=True, kw_only=True)
class IterationResult:
    """Outcome of one simulated iteration.

    ``spans`` come worker by worker, each in the order in which it did them, ``transfers`` link by
    link, each in the order in which messages left; where they have the link to themselves, in
    which they started. So results of equal simulations are equal.

    ``utilisation`` is useful FLOPs over the peak of *all* GPUs of all domains times the makespan.
    """

    makespan_s: float
    utilisation: float
    stages: tuple[StageUse, ...]
    links: tuple[LinkUse, ...]
    memory: tuple[DomainMemory, ...]
    spans: tuple[Span, ...]
    transfers: tuple[Transfer, ...]

    @classmethod
    def of_program(
        cls, program: Program, end_s: float, busy_s: Sequence[float], **rows: Any
    ) -> "IterationResult":
        """Sum up a run of a program that began at time 0.

        Parameters
        ----------
        end_s
            End of the last operation. [s]
        busy_s
            Time in which each stage has computed. [s]
        rows
            Links, spans and transfers.
        """
        makespan_s = program.with_update_s(end_s)
        stages = tuple(
            StageUse(
                domain=stage.domain,
                device=stage.domain_device,
                first_layer=stage.first_layer,
                num_layers=stage.num_layers,
                busy_s=each_s,
                idle_s=makespan_s - each_s,
            )
            for stage, each_s in zip(program.stages, busy_s, strict=True)
        )
        return cls(
            makespan_s=makespan_s,
            utilisation=program.useful_flops / (program.peak_flops_per_s * makespan_s),
            stages=stages,
            memory=program.memory,
            **rows,
        )

    @cached_property
    def bubble_fraction(self) -> float:
        """Share of the time that the devices in use stand idle."""
        num_used = len({(stage.domain, stage.device) for stage in self.stages})
        busy_s = sum(stage.busy_s for stage in self.stages)
        return 1.0 - busy_s / (num_used * self.makespan_s)

    @cached_property
    def exposed_exchange_s(self) -> float:
        """Time after the last pass in which gradients are still summed up. [s]"""
        return self.makespan_s - max(span.end_s for span in self.spans)

    @cached_property
    def communication_cost_bytes(self) -> float:
        """Communication cost: bytes over all links at a price of 1 per byte and hop."""
        num_bytes = 0.0
        for link in self.links:  # link by link, as compiled code does; `sum` may round otherwise
            num_bytes += link.num_bytes
        return num_bytes

    @cached_property
    def transfer_compute_ratio(self) -> float | None:
        """Ratio of a border's time on the wires per activation to a stage's forward time.

        Mean over borders between domains and microbatches of an activation's time on the wire, all
        hops added, over the mean forward time of a stage: ``R = h F_eff / (B N_stage)`` for equal
        links of bandwidth ``B`` and equal stages of ``N_stage`` parameters on ``F_eff`` FLOP/s,
        hidden size ``h`` (CrossPipe, ATC'25). Latencies and queues are left out. None where no
        activation leaves its domain.
        """
        forward_s = [span.end_s - span.start_s for span in self.spans if span.kind == "F"]
        moves = [move for move in self.transfers if move.kind == "F"]
        if not moves:
            return None
        wire_s = sum(move.end_s - move.start_s for move in moves)
        num_activations = len({(move.stage, move.microbatch) for move in moves})
        return (wire_s / num_activations) / (sum(forward_s) / len(forward_s))

    @property
    def fits_memory(self) -> bool:
        """Whether every domain has the memory that the plan needs."""
        return all(memory.fits for memory in self.memory)

    def to_frame(self, table: Table = "spans") -> "pd.DataFrame":
        """Return one of the tables as a data frame, one row per item; see `columns`."""
        return pd.DataFrame(self.columns(table))

    def columns(self, table: Table = "spans") -> dict[str, list[Any]]:
        """Return one of the tables as its columns.

        Raises
        ------
        ValueError
            If there is no such table.
        """
        if table == "spans":
            found = columns_of(self.spans, Span._fields)
            domains = [self.stages[stage].domain for stage in found["stage"]]
            return {"stage": found.pop("stage"), "domain": domains, **found}
        if table == "transfers":
            found = columns_of(self.transfers, Transfer._fields)
            links = [self.links[link] for link in found.pop("link")]
            ends = {name: [getattr(link, name) for link in links] for name in ("source", "target")}
            return ends | found
        if table not in ("stages", "links", "memory"):
            raise ValueError(
                f"to_frame: table must be stages, links, memory, spans or transfers; got {table!r}"
            )
        row_types = {"stages": StageUse, "links": LinkUse, "memory": DomainMemory}
        return columns_of(getattr(self, table), [field.name for field in fields(row_types[table])])

    def to_xarray(self, table: Literal["stages", "links", "memory", "spans"] = "spans") -> Any:
        """Return one of the tables as an `xarray.Dataset` over what names its rows.

        Spans are arrays over (stage, kind, microbatch), links over (source, target), others over
        the stage or the domain. What does not happen is NaN.

        Raises
        ------
        ValueError
            If there is no such table, or the extra ``xarray`` is not installed.
        """
        if table not in _AXES:
            raise ValueError(f"to_xarray: table must be {', '.join(_AXES)}; got {table!r}")
        frame = self.to_frame(table)
        if table == "stages":
            frame.insert(0, "stage", range(len(frame)))
        return frame_to_xarray(frame, _AXES[table])

    def to_networkx(self) -> "nx.DiGraph[str]":
        """Return domains in use and links between them as a directed graph.

        Nodes have ``busy_s`` and ``num_layers`` of their stages, edges ``num_bytes``,
        ``num_messages`` and ``busy_s`` of the link.

        Raises
        ------
        ValueError
            If the extra ``networkx`` is not installed.
        """
        require_extra("to_networkx", "networkx")
        graph: nx.DiGraph[str] = nx.DiGraph()
        for stage in self.stages:
            node = graph.nodes.get(stage.domain, {"busy_s": 0.0, "num_layers": 0})
            graph.add_node(
                stage.domain,
                busy_s=node["busy_s"] + stage.busy_s,
                num_layers=node["num_layers"] + stage.num_layers,
            )
        for link in self.links:
            if link.num_messages:
                figures = asdict(link)
                graph.add_edge(figures.pop("source"), figures.pop("target"), **figures)
        return graph

    def _repr_html_(self) -> str:
        """Headline and stages as HTML, which notebooks show."""
        title = f"{self.makespan_s:.4g} s an iteration, bubble {self.bubble_fraction:.1%}"
        links = [link for link in self.links if link.num_messages]
        moved = f"{self.communication_cost_bytes / 1e9:.4g} GB over {len(links)} links"
        table = self.to_frame("stages").to_html(index=False, float_format="{:.4g}".format)
        return f"<h4>{title}</h4><p>{moved}</p>{table}"
