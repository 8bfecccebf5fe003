"""Parts of the difference between a measured step and its prediction, at the last rank."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from des import IterationResult
from des.engine.result import Span
from des.figures.figure import Figure
from des.figures.panels import Axis
from des.views.gantt import gantt_figure

PASSES, OWN, END = "passes", "between passes, no message", "after the last pass"
_KIND_OF = {"F": "F", "B": "B", "I": "D", "W": "W"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeDifference:
    """A part of the time of the rank that ends last: predicted, and measured. [s]"""

    name: str
    predicted_s: float
    measured_s: float

    @property
    def difference_s(self) -> float:
        """Measured minus predicted. [s]"""
        return self.measured_s - self.predicted_s


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A step as it was predicted and as it was measured, whose spans come rank by rank.

    Attributes
    ----------
    rank_of_stage
        Rank of each stage.
    """

    predicted: IterationResult
    measured: IterationResult
    rank_of_stage: Mapping[int, int]

    @classmethod
    def of_records(
        cls,
        predicted: IterationResult,
        records: Sequence[Mapping[str, Any]],
        stages_of_rank: Sequence[Sequence[int]],
    ) -> "Comparison":
        """Take what each rank said of a step."""
        spans = tuple(
            Span(stage, _KIND_OF[kind], microbatch, start_s, end_s)
            for own in records
            for stage, kind, microbatch, start_s, end_s in own["spans"]
        )
        makespan_s = max(own["end_s"] for own in records)
        return cls(
            predicted=predicted,
            measured=replace(predicted, makespan_s=makespan_s, links=(), spans=spans, transfers=()),
            rank_of_stage={stage: rank for rank, own in enumerate(stages_of_rank) for stage in own},
        )

    @property
    def last_rank(self) -> int:
        """Rank whose passes end last in the measured step."""
        return self.rank_of_stage[max(self.measured.spans, key=lambda span: span.end_s).stage]

    def parts(self) -> list[TimeDifference]:
        """Parts of the last rank's time, which add up to both steps; largest difference first."""
        predicted, measured = (dict(self._parts(one)) for one in (self.predicted, self.measured))
        found = [
            TimeDifference(name=name, predicted_s=own_s, measured_s=measured[name])
            for name, own_s in predicted.items()
        ]
        return sorted(found, key=lambda part: -abs(part.difference_s))

    def largest_wait(self) -> TimeDifference:
        """Wait of the last rank that grew most, named by the pass after it."""
        pairs = zip(self._waits(self.predicted), self._waits(self.measured), strict=True)
        found = [
            TimeDifference(
                name=f"{self._wait_of(span)}, before {_name(span)}",
                predicted_s=own_s,
                measured_s=other_s,
            )
            for (span, own_s), (_, other_s) in pairs
        ]
        return max(found, key=lambda part: part.difference_s)

    def _parts(self, result: IterationResult) -> Iterator[tuple[str, float]]:
        spans = self._last_spans(result)
        yield PASSES, sum(span.end_s - span.start_s for span in spans)
        sums: dict[str, float] = {}
        for span, wait_s in self._waits(result):
            name = self._wait_of(span)
            sums[name] = sums.get(name, 0.0) + wait_s
        yield from sums.items()
        yield END, result.makespan_s - spans[-1].end_s

    def _last_spans(self, result: IterationResult) -> list[Span]:
        """Passes of the last rank, in the order in which it does them."""
        own = [one for one in result.spans if self.rank_of_stage[one.stage] == self.last_rank]
        return sorted(own, key=lambda span: span.start_s)

    def _waits(self, result: IterationResult) -> Iterator[tuple[Span, float]]:
        """Time between each pass and the one before it, or the start of the step."""
        end_s = 0.0
        for span in self._last_spans(result):
            yield span, span.start_s - end_s
            end_s = span.end_s

    def _wait_of(self, span: Span) -> str:
        """Name what a pass waits for."""
        other = span.stage + (-1 if span.kind == "F" else 1)
        rank = self.rank_of_stage.get(other)
        is_end = rank is None or self._is_border(span.stage, other)
        if span.kind == "W" or is_end or rank == self.rank_of_stage[span.stage]:
            return OWN
        what = "activations" if span.kind == "F" else "gradients"
        return f"{what} from {self.predicted.stages[other].domain}"

    def _is_border(self, stage: int, other: int) -> bool:
        """Whether two stages are of different replicas: the first layer comes again."""
        first, second = (self.predicted.stages[one] for one in sorted((stage, other)))
        return second.first_layer != first.first_layer + first.num_layers

    def figure(self) -> Figure:
        """Return both timelines, one below the other, on one axis of time."""
        own = [
            replace(gantt_figure(one).panels[0], title=title)
            for one, title in ((self.predicted, "predicted"), (self.measured, "measured"))
        ]
        high = max(self.predicted.makespan_s, self.measured.makespan_s)
        axis = Axis(label="time in s", low=0.0, high=high)
        difference = self.measured.makespan_s / self.predicted.makespan_s - 1.0
        return Figure(
            name="rehearsal",
            title="One step, predicted and measured",
            note=f"predicted {self.predicted.makespan_s:.4g} s    measured "
            f"{self.measured.makespan_s:.4g} s    difference {difference:+.1%}",
            seen=f"Passes of {len(self.predicted.stages)} stages. Predicted: they and the messages "
            f"between them take {self.predicted.makespan_s:.4g} s. Measured: "
            f"{self.measured.makespan_s:.4g} s.",
            panels=tuple(replace(panel, x=axis) for panel in own),
            width=12.0,
        )


def _name(span: Span) -> str:
    return f"{span.kind}{span.microbatch} of stage {span.stage}"
