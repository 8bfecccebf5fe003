"""Speed of the explorer in headless Chromium: from a key on a slider to the new picture."""

import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.browser import CHROMIUM, Tab, chromium
from bench.report import Section, column, one_table
from bench.timing import Effort
from bench.worlds import MODEL, SIZES, SMALL, Size, mesh
from des import write_topology
from scenarios.explore.app import Explorer, explorer_app
from scenarios.explore.command import Served, free_port
from scenarios.explore.layout import FIGURES
from scenarios.explore.scene import Settings

TARGET_MS = 200.0
SLIDER = "bandwidth"
NUM_MOVES = 15
"""Timed moves of the slider, which has 16 steps to its end; the first one is not timed."""

_DRAWN = f"{json.dumps(FIGURES)}.every(name => document.querySelector(`#${{name}} .main-svg`))"
READY = f"document.getElementById('memory-seen')?.textContent && {_DRAWN}"
_MEASURE = f"""window.moved = new Promise(done => {{
  const slider = document.getElementById({SLIDER!r});
  let began, left = {len(FIGURES)};
  slider.addEventListener('input', () => {{ began = performance.now(); }}, {{once: true}});
  const shown = () => done(performance.now() - began);
  for (const name of {json.dumps(FIGURES)})
    document.querySelector(`#${{name}} .js-plotly-plot`).once('plotly_react', () => {{
      left -= 1;
      if (!left) requestAnimationFrame(() => setTimeout(shown));
    }});
  slider.focus();
}})"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplorerRow:
    """Times of one size."""

    size: str = column("stages and microbatches")
    median_ms: float = column("slider to new picture, median [ms]", ",.0f")
    least_ms: float = column("least [ms]", ",.0f")
    target_ms: float | None = column("target [ms]", ",.0f")
    server_ms: float = column("CPU time of the server for a move [ms]", ",.0f")


NOTE = (
    "One domain a stage, every two joined by 5 Gbit/s; Llama 2 70B. From the slider's input event, "
    "made by a key, until all four figures are drawn and the frame is on the screen; server and "
    "browser on one machine. The bandwidth differs at each move. The bound is not part of a move: "
    "it is proven when the controls have rested for 0.3 s."
)


def measure(effort: Effort) -> Section:
    """Time moves of the bandwidth slider.

    Raises
    ------
    ValueError
        If there is no Chromium.
    """
    if CHROMIUM is None:
        raise ValueError("explorer: needs chromium; for example: apt-get install chromium")
    sizes = SMALL if effort.is_quick else SIZES
    num_moves = 2 if effort.is_quick else NUM_MOVES
    rows = [_row(size, num_moves) for size in sizes]
    return one_table("explorer", "A move of a slider of the explorer", rows, NOTE)


def _row(size: Size, num_moves: int) -> ExplorerRow:
    with _served(size) as served, chromium() as tab:
        tab.show(width=1280)
        tab.open(served.url, READY)
        move(tab)
        began_s = time.process_time()
        moves = [move(tab) for _ in range(num_moves)]
        cpu_s = time.process_time() - began_s
    return ExplorerRow(
        size=str(size),
        median_ms=statistics.median(moves),
        least_ms=min(moves),
        target_ms=TARGET_MS if size == SIZES[1] else None,
        server_ms=1e3 * cpu_s / num_moves,
    )


@contextmanager
def _served(size: Size) -> Iterator[Served]:
    with tempfile.TemporaryDirectory() as folder:
        network = Path(folder) / "network.yaml"
        write_topology(network, mesh(size.num_stages))
        settings = Settings(network=str(network), model=MODEL, num_sequences=size.num_microbatches)
        app = explorer_app(Explorer(settings=settings, runs=Path(folder)))
        with Served(app.server, free_port(0)) as served:
            yield served


def move(tab: Tab) -> float:
    """Move the slider by one step, by a key; returns the time until the new picture. [ms]"""
    tab.run(f"{_MEASURE}; null")
    tab.press("ArrowLeft")
    return float(str(tab.run("window.moved")))
