"""Bubble rates of pipeline schedules against those published with the zero-bubble schedules.

The table is that of "Zero Bubble Pipeline Parallelism", ICLR 2024. A bubble rate is the share of
the longest device's time, from its first start to its last end, in which it does not compute. The
bounds: 1F1B, ZB-H1 and ZB-H2 to the four decimals published, interleaved 1F1B within 0.005, the
automatic schedule in twice the memory of 1F1B (ZB-2p) within 0.01.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from des.figures.figure import Figure
from des.figures.marks import Points, bars_from_zero
from des.figures.palette import INK, SKY
from des.figures.panels import Axis, Panel, named_rows
from des.schedules import Orders, Pipeline, check_order_memory
from des.schedules.automatic import automatic_zero_bubble
from des.schedules.flush import one_f_one_b
from des.schedules.interleaved import interleaved_1f1b
from des.schedules.zero_bubble import zb_h1, zb_h2
from scenarios.reproduce.cases import PUBLISHED, CaseFile, read_cases, require_judged
from scenarios.reproduce.report import Bound, Reproduction
from scenarios.reproduce.unit_world import simulate_stages
from scenarios.reproduce.zero_bubble_cases import COLUMNS, BubbleRow

SHIPPED = PUBLISHED / "zero_bubble.json"
MakeOrders = Callable[[BubbleRow], tuple[Orders, Pipeline]]
"""Makes the orders of a row, and the pipeline that they are for."""
_ROUNDING = 1.0 + 1e-9  # of a difference of two decimal fractions
_NOTE = (
    "Ours: orders run by the discrete-event simulation on a chain of devices, each hop with the "
    "latency given and no bytes."
)
_NOTES = {
    "interleaved_1f1b": (
        "interleaved_1f1b: a chunk is one layer, with embedding and head as one each.",
        "In the paper's rows ours is above what is published, which comes out to four decimals if "
        "only the first microbatch of each group waits for its way from the last device to the "
        "first.",
    ),
    "zb_2p": (
        "zb_2p: our own search, within the activations of 2 p microbatches on every device.",
        "Of those of a microbatch the part 32 / (34 + 5 a s / h) is kept from the input to the "
        "weight gradient (a heads, s tokens, hidden size h).",
        "The difference is negative where our search found less idle time than theirs.",
    ),
}
"""Remarks on the table, by the schedule that they concern."""


def reproduce_cases(path: Path) -> Reproduction:
    """Reproduce the rows of a file."""
    cases = read_cases(path, BubbleRow, SHIPPED)
    judged = any(row.published for row in cases.rows)
    require_judged(path, judged, "a bubble_rate of some schedule")
    return reproduce(cases)


def reproduce(cases: CaseFile[BubbleRow]) -> Reproduction:
    """Compute every published cell and judge each schedule."""
    allowed = {name: target * _ROUNDING for name, target in cases.targets.items()}
    frame = compare(cases.rows, allowed)
    by_schedule = {name: frame[frame["schedule"] == name] for name in COLUMNS}
    return Reproduction(
        title="Bubble rates of pipeline schedules",
        frame=frame,
        bounds=tuple(
            Bound.at_most(
                f"{name}, greatest difference of {len(cells)} bubble rates",
                float(cells["difference"].abs().max()),
                allowed[name],
                shown=".2g",
            )
            for name, cells in by_schedule.items()
            if len(cells)
        ),
        figure=draw(frame),
        notes=(
            f"Published: {cases.source}",
            _NOTE,
            *(note for name, notes in _NOTES.items() if len(by_schedule[name]) for note in notes),
        ),
    )


def compare(rows: Sequence[BubbleRow], allowed: Mapping[str, float]) -> pd.DataFrame:
    """One row per cell: what is published, ours, by how much ours is above it, if that is allowed.

    Rows of the file count from 0, as in the messages about them.
    """
    cells = []
    for number, row in enumerate(rows):
        for name, published in row.published.items():
            ours = bubble_rate(row, name)
            cells.append(
                {
                    "row": number,
                    "model": row.model,
                    "num_stages": row.num_stages,
                    "num_microbatches": row.num_microbatches,
                    "schedule": name,
                    "published_bubble_rate": published,
                    "our_bubble_rate": ours,
                    "difference": ours - published,
                    "within_bound": abs(ours - published) <= allowed[name],
                }
            )
    return pd.DataFrame(cells)


def bubble_rate(row: BubbleRow, schedule: str) -> float:
    """Share of a simulated iteration in which the longest device does not compute."""
    orders, pipeline = _ORDERS[schedule](row)
    return 1.0 - row.ideal_s / longest_device_s(orders, pipeline)


def longest_device_s(orders: Orders, pipeline: Pipeline) -> float:
    """Longest time that a device takes in the simulation, from its first start to its last end."""
    devices = pipeline.device_of_stage
    result = simulate_stages(orders, pipeline)
    starts_s, ends_s = defaultdict(list), defaultdict(list)
    for span in result.spans:
        starts_s[devices[span.stage]].append(span.start_s)
        ends_s[devices[span.stage]].append(span.end_s)
    return max(max(ends_s[device]) - min(starts_s[device]) for device in starts_s)


def _of_counts(schedule: Callable[[int, int], Orders]) -> MakeOrders:
    return lambda row: (schedule(row.num_stages, row.num_microbatches), row.pipeline())


def _interleave(row: BubbleRow) -> tuple[Orders, Pipeline]:
    assert row.num_chunks is not None  # the row has been checked
    orders = interleaved_1f1b(row.num_stages, row.num_chunks, row.num_microbatches)
    return orders, row.pipeline(row.num_chunks)


def _zb_2p(row: BubbleRow) -> tuple[Orders, Pipeline]:
    assert row.bytes_of_layer is not None  # the row has been checked
    whole, rest = row.bytes_of_layer
    count = row.num_stages
    pipeline = replace(
        row.pipeline(),
        activation_bytes=(whole,) * count,
        weight_input_bytes=(rest,) * count,
        memory_bytes=(2 * count * whole,) * count,
    )
    orders = automatic_zero_bubble(pipeline)
    check_order_memory(orders, pipeline)
    return orders, pipeline


_ORDERS: dict[str, MakeOrders] = {
    "1f1b": _of_counts(one_f_one_b),
    "interleaved_1f1b": _interleave,
    "zb_h1": _of_counts(zb_h1),
    "zb_h2": _of_counts(zb_h2),
    "zb_2p": _zb_2p,
}


def draw(frame: pd.DataFrame) -> Figure:
    """Return our bubble rates as bars and the published ones as points, a panel for each row."""
    return Figure(
        name="picture",
        title="Bubble rates, ours as bars and the published ones as points",
        seen=f"Bubble rates of {len(frame)} cells: ours are between "
        f"{frame['our_bubble_rate'].min():.3f} and {frame['our_bubble_rate'].max():.3f}.",
        panels=tuple(_panel(group) for _, group in frame.groupby("row", sort=False)),
        columns=2,
        width=9.0,
    )


def _panel(cells: pd.DataFrame) -> Panel:
    first = cells.iloc[0]
    rows = tuple(map(float, range(len(cells))))
    published = tuple(cells["published_bubble_rate"].astype(float))
    return Panel(
        x=Axis(label="bubble rate", low=0.0),
        y=named_rows(map(str, cells["schedule"])),
        marks=(
            bars_from_zero("ours", cells["our_bubble_rate"], SKY),
            Points(label="published", x=published, y=rows, colour=INK, size=4.0),
        ),
        title=f"{first['model']}, p = {first['num_stages']}, m = {first['num_microbatches']}",
        height=0.4 + 0.24 * len(cells),
        grid="x",
    )
