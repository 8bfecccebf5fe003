"""The original's analytical programs as the reference."""

import os
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path

from astra_sim import NodeType, SystemConfig, Trace, TraceNode
from astra_sim.workload.statistics import roofline_ns
from calibration.cases.case import PlacementCase
from calibration.reference.astra_config import Backend, system_config
from calibration.reference.binaries import Ended, ReferenceRunError, run_reference_program
from calibration.reference.export import PROGRAMS, input_flags, why_only_ours, write_inputs
from calibration.reference.finish_lines import Finish, parse_finishes
from calibration.reference.trace_set import TraceSet

_CRASHES = frozenset(
    code
    for number in (signal.SIGABRT, signal.SIGSEGV)
    for code in (-number, 128 + number)  # as a shell shows it
)
"""Exit codes with which the original may end after all its output, with two small groups an NPU."""


def program_in(folder: Path, backend: Backend) -> Path:
    """Find the original's program for a backend.

    Raises
    ------
    ReferenceRunError
        If the folder has none that can be run.
    ValueError
        If the original has no such backend.
    """
    if backend not in PROGRAMS:
        raise ValueError(
            f"backend: must be one of {', '.join(PROGRAMS)} for the original's programs, "
            f"got {backend!r}"
        )
    program = folder / PROGRAMS[backend]
    _check_program(program)
    return program


def _check_program(program: Path) -> None:
    """Refuse a program that is not there or may not be run."""
    if not program.is_file():
        raise ReferenceRunError(f"{program}: must be a program, got no such file")
    if not os.access(program, os.X_OK):
        raise ReferenceRunError(f"{program}: must be executable, got a file that is not")


def run_original(
    seen: PlacementCase,
    backend: Backend,
    traces: TraceSet,
    binaries: Path,
    *,
    timeout_s: float,
    num_attempts: int,
) -> tuple[Finish, ...]:
    """Run one of the original's programs on a case that it can run as our engine does.

    Raises
    ------
    ValueError
        If it cannot.
    ReferenceRunError
        If no attempt gave a result.
    """
    program = program_in(binaries.resolve(), backend)
    why = why_only_ours(seen, backend)
    if why is not None:
        raise ValueError(f"backend {backend}: {program.name} cannot run this case: {why}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(seen, backend, traces, folder)
        flags = input_flags(traces) | {"logging-folder": "log"}
        words = [str(program), *(f"--{name}={value}" for name, value in flags.items())]
        return _finishes(
            words,
            folder,
            traces,
            system_config(seen),
            timeout_s=timeout_s,
            num_attempts=num_attempts,
        )


def _write(seen: PlacementCase, backend: Backend, traces: TraceSet, folder: Path) -> None:
    try:
        write_inputs(seen, backend, traces, folder)
    except OSError as error:
        raise ReferenceRunError(
            f"folder {folder}: inputs cannot be written: {error.strerror}"
        ) from error


def _finishes(
    words: Sequence[str],
    folder: Path,
    traces: TraceSet,
    system: SystemConfig,
    *,
    timeout_s: float,
    num_attempts: int,
) -> tuple[Finish, ...]:
    """Run a program until an attempt gives a result, at most ``num_attempts`` times."""
    computing_cycles = [_computing_cycles(trace, system) for trace in traces.traces]
    may_crash = _uses_several_groups(traces)
    failures: list[ReferenceRunError] = []
    while len(failures) < num_attempts:
        ended = run_reference_program(words, folder, timeout_s=timeout_s)
        try:
            return _judge(ended, computing_cycles, may_crash=may_crash)
        except ReferenceRunError as error:
            failures.append(error)
    last = failures[-1]
    if num_attempts == 1:
        raise last
    raise ReferenceRunError(f"{num_attempts} attempts gave no result; the last: {last}") from last


def _computing_cycles(trace: Trace, system: SystemConfig) -> int:
    """Computing time of an NPU, which ASTRA-sim does not count as exposed communication. [ns]"""
    computations = (node for node in trace.nodes if node.type == NodeType.COMP)
    return sum(roofline_ns(node, system) or 0 for node in computations)


def _judge(ended: Ended, computing_cycles: Sequence[int], *, may_crash: bool) -> tuple[Finish, ...]:
    """Return the finish of every NPU if the program ended as it should."""
    if ended.stopped is not None:
        raise ended.failed(ended.stopped)
    try:
        finishes = parse_finishes(ended.stdout, len(computing_cycles))
    except ValueError as error:
        raise ended.failed(str(error)) from error
    if ended.exit_code and not (may_crash and ended.exit_code in _CRASHES):
        raise ended.failed("it failed after its finish lines")
    for rank, (finish, cycles) in enumerate(zip(finishes, computing_cycles, strict=True)):
        if finish.cycles - finish.exposed_cycles != cycles:
            raise ended.failed(
                f"finish lines: rank {rank} must have {cycles} cycles, its computations, that are "
                f"not exposed communication, got {finish.cycles} - {finish.exposed_cycles}"
            )
    return finishes


def _uses_several_groups(traces: TraceSet) -> bool:
    """Whether an NPU takes part in collectives of two groups smaller than the system."""
    small = {
        str(number)
        for number, members in traces.groups.items()
        if len(members) < len(traces.traces)
    }
    return any(
        len(small & {node.text("pg_name", "") for node in trace.nodes if _is_collective(node)}) > 1
        for trace in traces.traces
    )


def _is_collective(node: TraceNode) -> bool:
    return node.type == NodeType.COMM_COLL
