"""Table of Korthikanti et al.: iteration times and memory with and without recomputation.

Times of full recomputation are without sequence parallelism, those of selective recomputation with
it; the latter's memory is held against that of no recomputation and no sequence parallelism.
"""

from pathlib import Path
from typing import Literal

from pydantic import Field

from calibration.measured.run_sizes import RunSizes
from calibration.measured.runs import FITTED_FIGURES, RunCluster, Setup, SimulatedRun
from des import domain_memory
from des.base.checks import prefixed_errors
from des.costs.bound_stages import bound_stages
from des.costs.memory import model_state_bytes
from des.job.transformer import layer_parameters
from scenarios.reproduce.cases import CaseForm, Count, PositiveNumber, read_measured
from scenarios.reproduce.measured_tables import (
    RUN_COLUMNS,
    ErrorTarget,
    MeasuredCell,
    MeasuredTable,
)

GIB = 2.0**30
KEPT = {
    "none": ("none", False),
    "full": ("full", False),
    "selective_sp": ("selective", True),
}
"""Recomputation, and whether it is with sequence parallelism, of each column."""

Quantity = Literal["iteration_s", "activations_gib", "layer_state_gib"]
NOUNS: dict[Quantity, str] = {
    "iteration_s": "iteration times",
    "activations_gib": "activations",
    "layer_state_gib": "model states",
}


class KorthikantiSetup(RunCluster):
    """Cluster of the table, and targets for the mean absolute error of each quantity."""

    target_errors: dict[Quantity, PositiveNumber] = Field(default_factory=dict)


class MemoryForm(CaseForm):
    """Memory of a GPU on the fullest rank; null was not published. [GiB]"""

    parameters_and_optimiser: PositiveNumber | None = None
    activations_none: PositiveNumber | None = None
    activations_selective_sp: PositiveNumber | None = None


class KorthikantiRow(CaseForm):
    """A model of the table with the way it was shared, and what was published of it."""

    model: str
    hidden_size: Count
    num_heads: Count
    num_layers: Count
    sequence_length: Count
    tensor: Count
    data: Count = 1
    pipeline: Count
    interleaving: Count = 1
    global_batch: Count
    microbatch_size: Count
    measured_iteration_s: dict[Literal["full", "selective_sp"], PositiveNumber | None] = Field(
        default_factory=dict
    )
    measured_memory_gib: MemoryForm = MemoryForm()

    @property
    def sizes(self) -> RunSizes:
        """The row as a run."""
        own = [name for name in type(self).model_fields if name in RunSizes.model_fields]
        return RunSizes(
            num_gpus=self.tensor * self.data * self.pipeline,
            **{name: getattr(self, name) for name in own},
        )


def predict_table(path: Path, shipped: Path) -> MeasuredTable:
    """Read a table and predict it; a file without setup takes the shipped one's.

    Raises
    ------
    ValueError
        If a file is not JSON, a field is missing or wrong, or a run is impossible; naming file,
        row, field, what is allowed and what came.
    """
    rows, setup = read_measured(path, shipped, KorthikantiRow, KorthikantiSetup)
    cells: list[MeasuredCell] = []
    for index, row in enumerate(rows):
        with prefixed_errors(f"{path}: rows[{index}]."):
            row.sizes.check()
            cells += _cells(row, setup)
    return MeasuredTable(
        name=path.stem,
        cells=tuple(cells),
        targets=tuple(
            ErrorTarget(quantity=quantity, noun=noun, target=setup.target_errors.get(quantity))
            for quantity, noun in NOUNS.items()
        ),
        notes=(*(_state_note(path.stem, row, setup) for row in rows), _MEMORY_NOTE),
    )


_MEMORY_NOTE = (
    "Korthikanti: the published memory is that of the paper's formulas to all digits, not of a "
    "measurement; layer_state is without embedding and head, as there."
)


def _cells(row: KorthikantiRow, setup: KorthikantiSetup) -> list[MeasuredCell]:
    """All figures of a row that were published."""
    memory = row.measured_memory_gib
    wanted: list[tuple[str, Quantity, float | None]] = [
        *((kept, "iteration_s", seconds) for kept, seconds in row.measured_iteration_s.items()),
        ("none", "activations_gib", memory.activations_none),
        ("selective_sp", "activations_gib", memory.activations_selective_sp),
        ("none", "layer_state_gib", memory.parameters_and_optimiser),
    ]
    return [
        MeasuredCell(
            run=f"{row.model} {kept}",
            quantity=quantity,
            measured=measured,
            predicted=_predict(simulate_row(row, setup, kept), quantity),
            columns={name: getattr(row.sizes, name) for name in RUN_COLUMNS},
            job=(row.model,) if quantity == "iteration_s" else None,
        )
        for kept, quantity, measured in wanted
        if measured is not None
    ]


def simulate_row(row: KorthikantiRow, setup: KorthikantiSetup, kept: str) -> SimulatedRun:
    """Run of a row with the recomputation of one column."""
    recomputation, sequence_parallel = KEPT[kept]
    cluster = {name: getattr(setup, name) for name in RunCluster.model_fields}
    return SimulatedRun(
        run=row.sizes,
        setup=Setup(recomputation=recomputation, sequence_parallel=sequence_parallel, **cluster),
        figures=FITTED_FIGURES,
    )


def _predict(run: SimulatedRun, quantity: Quantity) -> float:
    """Figure of a run in the simulator: seconds, or GiB of the fullest GPU."""
    if quantity == "iteration_s":
        return run.predicted_s
    if quantity == "layer_state_gib":
        return layer_state_gib(run)
    (memory,) = domain_memory(run.topology, run.workload, run.plan)
    return memory.activation_bytes / run.run.num_gpus / GIB


def layer_state_gib(run: SimulatedRun) -> float:
    """State of the layers on the fullest GPU, embedding and head left out. [GiB]"""
    layers: dict[int, int] = {}
    for one in bound_stages(run.topology, run.plan):
        layers[one.device] = layers.get(one.device, 0) + one.stage.num_layers
    parameters = max(layers.values()) * layer_parameters(run.architecture)
    (parallelism,) = run.plan.parallelism
    state_bytes = model_state_bytes(run.workload, parameters, parallelism)
    return state_bytes / parallelism.gpus_per_device / GIB


def _state_note(name: str, row: KorthikantiRow, setup: KorthikantiSetup) -> str:
    """All state of the fullest GPU, in a sentence."""
    run = simulate_row(row, setup, "none")
    (memory,) = domain_memory(run.topology, run.workload, run.plan)
    whole_gib = memory.model_state_bytes / row.sizes.num_gpus / GIB
    return (
        f"{name}, {row.model}: the fullest GPU's state is {layer_state_gib(run):.2f} GiB of "
        f"layers, {whole_gib:.2f} GiB with what else its stage has (embedding, head)."
    )
