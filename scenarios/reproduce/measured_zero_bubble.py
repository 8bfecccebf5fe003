"""Measured throughput and memory of 1F1B, interleaved 1F1B, ZB-1p and ZB-2p (Qi et al., ICLR'24).

Profiled times of passes are given; a rule each says what they leave out. The rules are few, follow
from what the system does, and are the same for all rows; none has a constant fitted to the table.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

from calibration.measured.runs import Setup
from des.schedules import Operation, Orders, Pipeline
from des.schedules.automatic import automatic_zero_bubble
from des.schedules.check import peak_bytes
from des.schedules.flush import one_f_one_b
from des.schedules.interleaved import interleaved_1f1b
from scenarios.reproduce.measured_tables import ErrorTarget, MeasuredCell, MeasuredTable
from scenarios.reproduce.measured_zero_bubble_rows import ThroughputRow, read_throughputs
from scenarios.reproduce.measured_zero_bubble_stages import STATE_BYTES, MeasuredStages
from scenarios.reproduce.unit_world import simulate_stages

THROUGHPUT = "samples_per_gpu_s"
MEMORY = "peak_gib"
GIB = 2.0**30
_MEMORY_FACTOR = {"zb_1p": 1, "zb_2p": 2}
"""Microbatches that a schedule may hold on every device, as a multiple of the stages."""

_STEADY_ITERATIONS = 3
"""Iterations after which zero-bubble schedules run at a steady pace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Rules for all that profiled times leave out.

    Parameters
    ----------
    waits
        Senders wait until a message has arrived under 1F1B and interleaved 1F1B, which are
        Megatron-LM's; the zero-bubble schedules overlap messages.
    step
        The exchange of the token table and the optimiser's step come after every iteration.
    ends
        The first and the last stage differ from the others, see `MeasuredStages`.
    """

    waits: bool = True
    step: bool = True
    ends: bool = True


CUMULATIVE = (
    ("profiled times alone", Rules(waits=False, step=False, ends=False)),
    ("senders wait in Megatron-LM's schedules", Rules(step=False, ends=False)),
    ("optimiser's step and tied table", Rules(ends=False)),
    ("first and last stage differ", Rules()),
)
"""Rules one after the other; the last has all."""

_ASSUMED = (
    "Not published, so assumed: profiled times are means over the stages; the vocabulary is the "
    "setup's; network cards as the setup has them; GB of peak memory are 2^30 bytes."
)


def predict_table(path: Path, shipped: Path) -> MeasuredTable:
    """Read a table of settings and predict it; a file without setup takes the shipped one's.

    Raises
    ------
    ValueError
        If a file is wrong, see `read_throughputs`.
    """
    rows, setup = read_throughputs(path, shipped)
    cells = [tuple(_cells(rows, setup, rules)) for _, rules in CUMULATIVE]
    return MeasuredTable(
        name=path.stem,
        cells=cells[-1],
        targets=(
            ErrorTarget(
                quantity=THROUGHPUT,
                noun="throughputs",
                target=setup.target_error,
                published=setup.published_error,
            ),
            ErrorTarget(quantity=MEMORY, noun="peaks of memory", target=None),
        ),
        regimes=("model", "schedule", "num_microbatches"),
        notes=(_cumulative_line(path.stem, cells), f"{path.stem}: {_ASSUMED}"),
    )


def _cumulative_line(name: str, cells: Sequence[tuple[MeasuredCell, ...]]) -> str:
    parts = (f"{label} {_errors(each)}" for (label, _), each in zip(CUMULATIVE, cells, strict=True))
    return (
        f"{name}, {THROUGHPUT}, mean absolute error (mean) [%], each rule with those before it: "
        f"{'; '.join(parts)}."
    )


def _errors(cells: tuple[MeasuredCell, ...]) -> str:
    errors = [cell.error_percent for cell in cells if cell.quantity == THROUGHPUT]
    if not errors:
        return "none"
    mean_absolute = sum(map(abs, errors)) / len(errors)
    return f"{mean_absolute:.1f} ({sum(errors) / len(errors):+.1f})"


def _cells(rows: tuple[ThroughputRow, ...], setup: Setup, rules: Rules) -> Iterator[MeasuredCell]:
    for row in rows:
        for schedule in row.schedules:
            found = PredictedSetting(row=row, setup=setup, rules=rules, schedule=schedule)
            if schedule in row.throughput:
                yield _cell(found, THROUGHPUT, row.throughput[schedule], found.samples_per_gpu_s)
            if schedule in row.memory_gib:
                yield _cell(found, MEMORY, row.memory_gib[schedule], found.peak_gib)


def _cell(
    found: "PredictedSetting", quantity: str, measured: float, predicted: float
) -> MeasuredCell:
    row = found.row
    sizes = (row.model, row.num_stages, row.num_microbatches, row.microbatch_size)
    return MeasuredCell(
        run=f"{row.model} p{row.num_stages} m{row.num_microbatches} {found.schedule}",
        quantity=quantity,
        measured=measured,
        predicted=predicted,
        columns={
            "model": row.model,
            "pipeline": row.num_stages,
            "num_microbatches": row.num_microbatches,
            "microbatch_size": row.microbatch_size,
            "schedule": found.schedule,
        },
        job=sizes if quantity == THROUGHPUT else None,
    )


@dataclass(frozen=True, kw_only=True)
class PredictedSetting:
    """A setting under one schedule, in the simulator."""

    row: ThroughputRow
    setup: Setup
    schedule: str
    rules: Rules = Rules()

    @cached_property
    def _stages(self) -> MeasuredStages:
        return MeasuredStages(row=self.row, setup=self.setup, has_ends=self.rules.ends)

    @property
    def _num_chunks(self) -> int:
        return self.row.layers_per_stage if self.schedule == "interleaved_1f1b" else 1

    @cached_property
    def orders(self) -> Orders:
        """Orders of all devices; zero-bubble schedules are searched for by profiled times alone."""
        row = self.row
        if self.schedule == "1f1b":
            return one_f_one_b(row.num_stages, row.num_microbatches)
        if self.schedule == "interleaved_1f1b":
            return interleaved_1f1b(row.num_stages, self._num_chunks, row.num_microbatches)
        return _search(self._plan())

    def _plan(self) -> Pipeline:
        """The pipeline as the search for a schedule sees it: equal stages, memory for p or 2 p."""
        row = self.row
        kept, halved = (row.layers_per_stage * each for each in self._stages.layer_bytes)
        count = row.num_stages
        stages = MeasuredStages(row=row, setup=self.setup, has_ends=False)
        return replace(
            stages.pipeline(),
            activation_bytes=(kept,) * count,
            weight_input_bytes=(halved,) * count,
            memory_bytes=(_MEMORY_FACTOR[self.schedule] * count * kept,) * count,
        )

    @cached_property
    def iteration_s(self) -> float:
        """Time from one iteration to the next. [s]

        Megatron-LM's schedules end an iteration before the next begins, as clipping needs the norm
        of all gradients; the zero-bubble schedules check it afterwards, so that a device begins the
        next iteration when it has ended its own part.
        """
        pipeline = self._stages.pipeline(self._num_chunks)
        after_s = self._stages.after_step_s if self.rules.step else 0.0
        if self.schedule not in _MEMORY_FACTOR:
            result = simulate_stages(self.orders, pipeline, senders_wait=self.rules.waits)
            return result.makespan_s + after_s
        return _steady_s(self.orders, pipeline) + after_s

    @property
    def samples_per_gpu_s(self) -> float:
        """Samples per GPU and second."""
        row = self.row
        num_samples = row.num_microbatches * row.microbatch_size
        return num_samples / row.num_stages / self.iteration_s

    @cached_property
    def peak_gib(self) -> float:
        """Model state and activations of the fullest GPU. [GiB]"""
        pipeline = self._stages.pipeline(self._num_chunks)
        state_bytes = (STATE_BYTES * each for each in self._stages.parameters)
        return max(
            (state + peak_bytes(order, pipeline)[0]) / GIB
            for state, order in zip(state_bytes, self.orders, strict=True)
        )


@lru_cache(maxsize=64)
def _search(pipeline: Pipeline) -> Orders:
    return automatic_zero_bubble(pipeline)


def _steady_s(orders: Orders, pipeline: Pipeline) -> float:
    """Time from the end of one iteration to that of the next, one following the other. [s]"""
    num_microbatches = pipeline.num_microbatches
    repeated = tuple(
        tuple(
            Operation(kind, iteration * num_microbatches + microbatch, stage)
            for iteration in range(_STEADY_ITERATIONS)
            for kind, microbatch, stage in order
        )
        for order in orders
    )
    together = replace(pipeline, num_microbatches=_STEADY_ITERATIONS * num_microbatches)
    ends_s = [0.0] * _STEADY_ITERATIONS
    for span in simulate_stages(repeated, together).spans:
        iteration = span.microbatch // num_microbatches
        ends_s[iteration] = max(ends_s[iteration], span.end_s)
    return ends_s[-1] - ends_s[-2]
