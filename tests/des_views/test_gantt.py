"""The Gantt chart: its bars are the passes and transfers, it is the same twice."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from strategies import cases, plan, unit_workload, world

from des import simulate
from des.figures.marks import Boxes
from des.figures.paper import draw, image_bytes
from des.views.gantt import gantt_figure, gantt_rgb

FORWARD, BACKWARD = (np.array(to_rgb(colour)) * 255 for colour in ("#0072B2", "#E69F00"))
LINKS = dict.fromkeys(("AB", "BA", "BC", "CB", "AC", "CA"), (10.0, 0.1))


def pipeline(*domain_of_layer, num_microbatches, passes_s=(1.0, 2.0)):
    workload = unit_workload(
        [passes_s] * len(domain_of_layer), num_microbatches=num_microbatches, message_bytes=1.0
    )
    return simulate(world("ABC", LINKS), workload, plan(*domain_of_layer))


def drawn_bars(figure, names):
    """Boxes of the kinds of these names, as drawn on paper: start, end and middle of each."""
    labels = [mark.label for mark in figure.panels[0].marks if isinstance(mark, Boxes)]
    axes = draw(figure).axes[0]
    collections = [c for c in axes.collections if isinstance(c, PolyCollection)]
    boxes = []
    for label, collection in zip(labels, collections, strict=True):
        if label in names:
            extents = [path.get_extents() for path in collection.get_paths()]
            boxes += [(box.x0, box.x1, (box.y0 + box.y1) / 2) for box in extents]
    return sorted(boxes)


def is_colour(pixels, colour):
    return np.abs(pixels.astype(float) - colour).max(axis=-1) < 8


@settings(max_examples=examples(20))
@given(case=cases())
def test_every_pass_and_transfer_is_a_bar_from_its_start_to_its_end(case):
    result = simulate(*case)

    figure = gantt_figure(result)

    spans = sorted((span.start_s, span.end_s, float(span.stage)) for span in result.spans)
    passes = drawn_bars(
        figure, {"forward pass", "backward pass", "input gradient"} | {"weight gradient"}
    )
    assert passes == [pytest.approx(span) for span in spans]
    moves = sorted((move.start_s, move.end_s) for move in result.transfers)
    transfers = drawn_bars(figure, {"activation", "gradient", "sum of gradients"})
    assert [bar[:2] for bar in transfers] == [pytest.approx(move) for move in moves]


def test_rows_are_the_stages_and_below_them_the_links_in_use():
    result = pipeline(0, 0, 1, 0, num_microbatches=2)

    axes = draw(gantt_figure(result)).axes[0]

    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "A  layers 0-1",
        "B  layer 2",
        "A  layer 3",
        "A→B",
        "B→A",
    ]
    assert list(axes.get_yticks()) == sorted(axes.get_yticks())
    assert axes.yaxis_inverted()
    assert axes.get_xlabel() == "time in s"


def test_the_head_gives_the_figures():
    figure = gantt_figure(pipeline(0, num_microbatches=2), title="a title")

    assert draw(figure).get_suptitle().splitlines()[0] == "a title"
    assert figure.note.split("    ") == [
        "makespan 6 s",
        "bubble fraction 0.000",
        "utilisation of all GPUs 0.333",
    ]


def test_what_is_seen_names_the_busiest_stage_and_link():
    """A computes twice as many layers as B, and the one link in use is A to B and back."""
    seen = gantt_figure(pipeline(0, 0, 1, num_microbatches=2)).seen

    assert "the stage of A from layer 0 computes longest" in seen
    assert "messages on 2 links" in seen


def test_colours_cover_areas_in_the_ratio_of_the_times():
    pixels = gantt_rgb(pipeline(0, num_microbatches=1, passes_s=(1.0, 3.0)))
    below_the_legend = pixels[100:]

    backward, forward = (is_colour(below_the_legend, c).sum() for c in (BACKWARD, FORWARD))

    assert backward / forward == pytest.approx(3.0, rel=0.05)


def test_passes_far_thinner_than_a_pixel_are_seen():
    result = pipeline(*(layer % 3 for layer in range(95)), num_microbatches=32)
    shortest = min(span.end_s - span.start_s for span in result.spans)
    assert shortest / result.makespan_s < 1 / 1200

    figure = draw(gantt_figure(result))
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(float)
    rows = figure.axes[0].transData.transform([(0.0, stage) for stage in range(95)])[:, 1]

    for row in pixels[len(pixels) - 1 - rows.astype(int)]:
        redder = row[:, 0] - row[:, 2]
        assert redder.min() < -50  # blue
        assert redder.max() > 50  # orange


def test_microbatches_are_numbered_where_the_numbers_fit():
    few, many = (
        draw(gantt_figure(pipeline(0, num_microbatches=count))).axes[0] for count in (8, 400)
    )

    assert [text.get_text() for text in few.texts] == [str(i) for i in range(8)] * 2
    assert not many.texts


@pytest.mark.parametrize("num_stages", [1, 2, 95])
def test_frames_of_a_video_have_one_shape(num_stages):
    frame = gantt_rgb(pipeline(*(i % 3 for i in range(num_stages)), num_microbatches=2))

    assert frame.shape == (675, 1200, 3)
    assert frame.dtype == np.uint8


def test_equal_results_give_equal_files_that_name_no_software():
    result = pipeline(0, 1, num_microbatches=3)

    content = image_bytes(gantt_figure(result, title="twice"))

    assert content == image_bytes(gantt_figure(result, title="twice"))
    assert content.startswith(b"\x89PNG")
    assert b"Software" not in content


def test_names_and_titles_are_drawn_as_they_are():
    topology = world("$_", {"$_": (1.0, 0.0), "_$": (1.0, 0.0)})
    workload = unit_workload([(1.0, 1.0)] * 2, num_microbatches=1, message_bytes=1.0)
    result = simulate(topology, workload, plan(0, 1))

    pixels = gantt_rgb(result, title=r"$\undefined$ {}")

    assert pixels.min() < pixels.max()


def test_drawing_changes_no_global_state():
    before = dict(mpl.rcParams)
    gantt_rgb(pipeline(0, 1, num_microbatches=2))
    assert dict(mpl.rcParams) == before

    program = "import sys, des.views.gantt; raise SystemExit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
