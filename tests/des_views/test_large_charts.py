"""Charts of large iterations: less is drawn, said so, and what is drawn lies inside the axes."""

from dataclasses import replace

from strategies import free_world, plan, unit_workload

from des import simulate
from des.engine.result import Span
from des.views import gantt, memory_figure
from des.views.memory_timeline import DeviceMemory, MemoryChange, MemoryTimeline

NUM = gantt._MOST_BARS
RESULT = simulate(free_world(1), unit_workload([(1.0, 2.0)], num_microbatches=2), plan(0))


def of_spans(num):
    """A result with passes of a second each, the last ones first."""
    spans = tuple(Span(0, "F", each, float(each), each + 1.0) for each in reversed(range(num)))
    return replace(RESULT, spans=spans, makespan_s=float(num))


def test_of_more_bars_than_a_page_holds_the_first_are_drawn_and_the_note_says_until_when():
    figure = gantt.gantt_figure(of_spans(2 * NUM))
    (panel,) = figure.panels
    (boxes,) = panel.marks

    assert sorted(boxes.starts) == [float(each) for each in range(NUM)]
    assert max(boxes.ends) == panel.x.high == NUM
    assert figure.note.endswith(
        f"drawn: the first 1e+04 s, {NUM:,} of {2 * NUM:,} passes and messages"
    )


def test_a_chart_of_fewer_bars_is_drawn_whole():
    figure = gantt.gantt_figure(of_spans(NUM))

    assert figure.panels[0].x.high == NUM
    assert "drawn" not in figure.note


def device(num):
    """A device whose memory rises and falls; its peak is in the middle."""
    heights = [min(each, num - 1 - each) * 1e6 for each in range(num)]
    changes = tuple(MemoryChange(float(at), 0, one, one) for at, one in enumerate(heights))
    return DeviceMemory(
        domain="A", device=0, num_gpus=1, weight_bytes=0.0, gradient_bytes=0.0,
        optimiser_bytes=0.0, capacity_bytes=1e12, changes=changes,
    )  # fmt: skip


def test_memory_of_many_changes_is_thinned_and_keeps_its_peak():
    num = 5 * memory_figure._MOST_CHANGES
    of_all = device(num)
    figure = memory_figure.memory_figure(MemoryTimeline(devices=(of_all,)), makespan_s=float(num))
    area = next(mark for mark in figure.panels[0].marks if mark.label == "activations")

    assert len(area.x) == num // 5 + 1
    assert max(area.high) == of_all.peak_activation_bytes / 1e9
    assert list(area.x) == sorted(area.x)
    assert figure.seen.endswith("Drawn: the highest of each 5 changes in a row.")
