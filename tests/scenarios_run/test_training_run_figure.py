"""The picture of a training run: grey where it waits, one panel per share of other jobs."""

from strategies import plan

from des.figures.marks import Line
from des.training.background import LoadSample
from des.training.training_history import EpochRow, IterationRow, TrainingHistory
from des.world.domain_load import IDLE, DomainLoad
from scenarios.run.training_run_figure import stalls, training_run_figure


def epoch_of(num_iterations, *, migration_s=0.0, stall_s=0.0):
    return EpochRow(
        epoch=0,
        start_s=0.0,
        plan=plan(0, 0),
        moved_bytes=0.0,
        drain_s=0.0,
        migration_s=migration_s,
        stall_s=stall_s,
        num_iterations=num_iterations,
    )


def test_the_picture_is_grey_where_no_iteration_runs():
    rows = tuple(
        IterationRow(number, 0, start_s, 10.0, 0.0, 0.0, 1.0)
        for number, start_s in enumerate([0.0, 10.0, 25.0, 35.0])
    )
    history = TrainingHistory(
        domains=("A",),
        total_s=48.0,
        iterations=rows,
        epochs=(epoch_of(4, migration_s=5.0, stall_s=3.0),),
        loads=(),
    )

    assert list(stalls(history)) == [(20.0, 25.0), (45.0, 48.0)]


def drawn_panels(load):
    """Lower and upper end of every panel of a run beside one load."""
    row = IterationRow(0, 0, 0.0, 10.0, 0.0, 0.0, 1.0)
    history = TrainingHistory(
        domains=("A",),
        total_s=10.0,
        iterations=(row,),
        epochs=(epoch_of(1),),
        loads=(LoadSample.of(0.0, 0, load),),
    )
    figure = training_run_figure(history, title="a run")
    lines = {
        panel.title: [mark for mark in panel.marks if isinstance(mark, Line)]
        for panel in figure.panels
    }
    return lines, [(panel.y.low, panel.y.high) for panel in figure.panels]


def test_the_picture_has_every_share_that_other_jobs_take():
    lines, _ = drawn_panels(DomainLoad(utilisation=0.25, memory_occupancy=0.125, queue_length=3))

    for label, value in (("GPUs taken", 0.25), ("memory taken", 0.125)):
        assert set(lines[f"{label} by other jobs"][0].y) == {value}
    assert set(lines["other jobs waiting"][0].y) == {3}


def test_a_panel_of_zeros_goes_from_0_to_1():
    _, (iterations, *others) = drawn_panels(IDLE)

    assert others == [(0.0, 1.0)] * 4
    assert iterations == (0.0, None)
