"""The engine of `astra_sim` against recorded times of the original, and its peak memory."""

import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.astra_inputs import Run, all_reduce, domains, pipeline
from bench.report import Section, Table, column
from bench.timing import Contestant, Effort, Timing, race

AIMED_RATIO = 3
AIMED_START_S = 0.6

RUNS = (
    pipeline(original_s=0.04),
    all_reduce("ring", original_s=0.07),
    all_reduce("direct", original_s=0.2),
    domains(32, 1, original_s=0.7),
    domains(32, 4, original_s=0.7),
)
GROWING = tuple(pipeline(count) for count in (32, 128, 512)) + tuple(
    domains(count, 1) for count in (4, 16, 64)
)
QUICK_RUNS = (pipeline(2), all_reduce("ring", 4), all_reduce("direct", 4), domains(1, 1))
QUICK_GROWING = (pipeline(1), pipeline(2))


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedRow:
    """One run against the original."""

    name: str = column("run")
    num_events: int = column("events", ",")
    wall_s: float = column("seconds", ".3f")
    spread_percent: float = column("± %", ".0f")
    cpu_s: float = column("CPU seconds", ".3f")
    events_per_cpu_s: float = column("events per CPU second", ",.0f")
    original_s: float | None = column("the original's seconds", "")
    ratio: float | None = column("ratio", ".1f")
    target: str | None = column("target")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    """Peak memory of one run."""

    name: str = column("run")
    num_events: int = column("events", ",")
    peak_mib: float = column("peak [MiB]", ".1f")
    bytes_per_event: float = column("bytes an event", ",.0f")


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRow:
    """One command from nothing to its exit."""

    name: str = column("command")
    seconds: float = column("seconds", ".3f")
    spread_percent: float = column("± %", ".0f")
    target: str | None = column("target")


def measure(effort: Effort) -> Section:
    """Time the runs, reading included; weigh some; time a tiny one as a command."""
    runs, growing = (QUICK_RUNS, QUICK_GROWING) if effort.is_quick else (RUNS, GROWING)
    return Section(
        name="astra",
        tables=[
            Table(title="Reading and simulating", rows=_speed_rows(runs, effort)),
            Table(title="Memory", rows=[_memory_row(each) for each in growing], in_page=False),
            Table(title="Start", rows=_start_rows(effort)),
        ],
        notes=[
            "The original's seconds are those of its description, on one core of another machine, "
            "its start included; it does not say how many splits the last run had. Ratios are of "
            "CPU seconds to these. Memory: what Python allocates, nodes and results included."
        ],
    )


def _speed_rows(runs: Sequence[Run], effort: Effort) -> list[SpeedRow]:
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name, str(number)) for number in range(len(runs))]
        nums_events = []
        for each, folder in zip(runs, folders, strict=True):
            folder.mkdir()
            each.write(folder)
            nums_events.append(each.read_and_simulate(folder).num_events)
        timings = race([_reading(*pair) for pair in zip(runs, folders, strict=True)], effort)
    return [_speed_row(*row) for row in zip(runs, nums_events, timings, strict=True)]


def _reading(run: Run, folder: Path) -> Contestant:
    return Contestant(name=run.name, call=lambda: run.read_and_simulate(folder))


def _speed_row(run: Run, num_events: int, timing: Timing) -> SpeedRow:
    cpu_s = 1.0 / timing.items_per_cpu_s
    return SpeedRow(
        name=run.name,
        num_events=num_events,
        wall_s=1.0 / timing.items_per_s,
        spread_percent=1e2 * timing.spread_fraction,
        cpu_s=cpu_s,
        events_per_cpu_s=num_events / cpu_s,
        original_s=run.original_s,
        ratio=None if run.original_s is None else cpu_s / run.original_s,
        target=None if run.original_s is None else f"{AIMED_RATIO} or less",
    )


def _memory_row(run: Run) -> MemoryRow:
    with tempfile.TemporaryDirectory() as name:
        run.write(Path(name))
        tracemalloc.start()
        result = run.read_and_simulate(Path(name))
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return MemoryRow(
        name=run.name,
        num_events=result.num_events,
        peak_mib=peak_bytes / 2**20,
        bytes_per_event=peak_bytes / result.num_events,
    )


def _start_rows(effort: Effort) -> list[StartRow]:
    with tempfile.TemporaryDirectory() as name:
        tiny, folder = all_reduce("ring", 4), Path(name)
        tiny.write(folder)
        flags = [
            f"--workload-configuration={folder / 'trace'}",
            f"--system-configuration={folder / 'system.json'}",
            f"--remote-memory-configuration={folder / 'remote_memory.json'}",
            f"--network-configuration={folder / 'network.yml'}",
            f"--logging-folder={folder / 'log'}",
        ]
        commands = {
            "python -c pass": ["-c", "pass"],
            "python -m astra_sim.unaware": ["-m", "astra_sim.unaware", *flags],
            "python -m astra_sim.aware": ["-m", "astra_sim.aware", *flags],
        }
        timings = race([_starting(*each) for each in commands.items()], effort)
    return [
        StartRow(
            name=timing.name,
            seconds=1.0 / timing.items_per_s,
            spread_percent=1e2 * timing.spread_fraction,
            target=f"{AIMED_START_S} or less" if "astra_sim" in timing.name else None,
        )
        for timing in timings
    ]


def _starting(name: str, arguments: Sequence[str]) -> Contestant:
    command = [sys.executable, *arguments]
    return Contestant(
        name=name, call=lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    )
