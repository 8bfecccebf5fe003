"""Folders that ASTRA-sim runs as they are: traces, configurations, and how to run them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from calibration.cases.aggregation import DEFAULT_AGGREGATION, Aggregation
from calibration.cases.case import PlacementCase
from calibration.reference.astra_config import (
    Backend,
    as_seen,
    groups_json,
    memory_json,
    network_config,
    network_options,
    network_yaml,
    system_config,
    system_json,
)
from calibration.reference.chakra_trace import TraceSet, build_traces, write_traces
from calibration.reference.ns3_folder import (
    PHYSICAL_FILE,
    SETTINGS_FILE,
    folder_texts,
    network_flags,
    require_safe,
)
from des.base.checks import system_errors
from des.base.whole_folder import whole_folder

PROGRAMS: Mapping[str, str] = MappingProxyType(
    {
        "unaware": "AstraSim_Analytical_Congestion_Unaware",
        "aware": "AstraSim_Analytical_Congestion_Aware",
    }
)
"""The original's programs, as its build names them."""

_FILES = MappingProxyType(
    {
        "workload": "trace",
        "system": "system.json",
        "remote-memory": "remote_memory.json",
        "network": "network.yml",
    }
)
_GROUPS = "comm_group.json"


def write_folder(
    case: PlacementCase,
    backend: Backend,
    folder: str | Path,
    *,
    aggregation: Aggregation = DEFAULT_AGGREGATION,
) -> None:
    """Write a complete folder of a case, in one step (an error leaves no folder).

    It holds ``trace.0.et`` and so on, ``network.yml``, ``system.json``, ``remote_memory.json``,
    ``comm_group.json``, a ``README.md`` with the command lines, and these as scripts that run from
    anywhere: ``run.sh`` and, where the original's programs can run the case, ``run_original.sh``.

    Raises
    ------
    ValueError
        If the folder already holds files or cannot be written, or the case cannot be expressed.
    """
    seen = as_seen(case, backend, aggregation)
    traces = build_traces(seen)

    def fill(whole: Path) -> None:
        write_inputs(seen, backend, traces, whole)
        (whole / "README.md").write_text(_readme(case, backend, traces, aggregation), "utf-8")
        for name, lines in _scripts(case, backend, traces).items():
            (whole / name).write_text(lines, "utf-8")

    _write_whole(Path(folder), fill)


def write_ns3_folder(case: PlacementCase, folder: str | Path) -> None:
    """Write a folder for ASTRA-sim's ns-3, in one step (an error leaves no folder).

    Raises
    ------
    ValueError
        If the folder already holds files or cannot be written, or that program cannot run the case,
        see `calibration.reference.ns3_folder.require_safe`.
    """
    traces = build_traces(case)
    require_safe(case, traces)

    def fill(whole: Path) -> None:
        write_inputs(case, "unaware", traces, whole)
        (whole / _FILES["network"]).unlink()
        for name, text in folder_texts(case).items():
            (whole / name).write_text(text, "utf-8")
        (whole / "README.md").write_text(_ns3_readme(case, traces), "utf-8")

    _write_whole(Path(folder), fill)


def _write_whole(folder: Path, fill: Callable[[Path], None]) -> None:
    """Create a new folder in one step: filled under a temporary name, then renamed.

    Raises
    ------
    ValueError
        If the folder already holds files or cannot be written.
    """
    with system_errors(f"folder {folder}: cannot be written"):
        if folder.exists() and any(folder.iterdir()):
            raise ValueError(f"folder {folder}: must be empty or new, but already holds files")
        with whole_folder(folder) as growing:
            fill(growing)


def write_inputs(seen: PlacementCase, backend: Backend, traces: TraceSet, folder: Path) -> None:
    """Write what a program reads into a folder; the case is one `as_seen` by the backend.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    texts = {
        _FILES["network"]: network_yaml(network_config(seen, backend)),
        _FILES["system"]: system_json(system_config(seen)),
        _FILES["remote-memory"]: memory_json(),
        _GROUPS: groups_json(traces.groups),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    write_traces(traces, folder, _FILES["workload"])


def input_flags(traces: TraceSet) -> dict[str, str]:
    """Flags of ASTRA-sim that name the files of the current folder.

    Groups are named only if there are some. Relative names, which need the folder to be the current
    one, are safe: the original takes any path of groups that contains ``empty`` for none.
    """
    flags = {f"{kind}-configuration": name for kind, name in _FILES.items()}
    if traces.groups:
        flags["comm-group-configuration"] = _GROUPS
    return flags


def why_only_ours(case: PlacementCase, backend: Backend) -> str | None:
    """Say why the original's programs cannot run a case as our engine does; None if they can."""
    if backend == "pairwise":
        return "only our engine reads matrices of links"
    if backend == "aware" and case.granularity == "gpu":
        return "the original's congestion-aware network has one dimension, and this has two"
    if system_config(case).communication_slots is None:
        return (
            "transport.endpoints is overlapped, for which communication slots have no limit; the "
            "original has one slot per NPU, which is transport.endpoints one_in_flight"
        )
    return None


def _readme(
    case: PlacementCase, backend: Backend, traces: TraceSet, aggregation: Aggregation
) -> str:
    why = why_only_ours(case, backend)
    if why is None:
        original = (
            "The original, from the folder `$ASTRA_SIM_BIN` of its programs; `run_original.sh` "
            "does this from anywhere:\n\n"
            + _block(_original(backend, traces))
            + "\nBoth print the same cycles. "
        )
    else:
        original = f"The original fails on it or gives other cycles: {why}. "
    return f"""# One training iteration for ASTRA-sim

Workload {case.workload.name}, {case.workload.num_microbatches} microbatches, schedule
{case.plan.schedule}; {len(traces.traces)} NPUs, one a {_NPU[case.granularity]};
network {backend}{_reduction(backend, aggregation)}.

Run these in this folder. Our engine; `run.sh` does this from anywhere:

{_block(_ours(case, backend, traces))}
{original}Every NPU prints one line

    sys[0] finished, N cycles, exposed communication M cycles.

in nanoseconds. The exit code does not tell whether all have finished: count the lines.
"""


def _ns3_readme(case: PlacementCase, traces: TraceSet) -> str:
    flags = input_flags(traces) | network_flags(traces)
    words = [f"--{name}={value}" for name, value in flags.items()]
    return f"""# One training iteration for ASTRA-sim's ns-3

Workload {case.workload.name}, {case.workload.num_microbatches} microbatches, schedule
{case.plan.schedule}; {len(traces.traces)} NPUs, one a {_NPU[case.granularity]}.

`{PHYSICAL_FILE}` has one switch a domain, `{SETTINGS_FILE}` an ECN threshold for each
speed of links. From this folder, `$NS3_BIN` being the program AstraSimNetwork:

{_command('"$NS3_BIN"', words)}
Every NPU prints one line

    sys[0] finished, N cycles, exposed communication M cycles.

in nanoseconds. The exit code does not tell whether all have finished: count the lines.
"""


_NPU = MappingProxyType({"domain": "domain", "gpu": "GPU"})


def _reduction(backend: Backend, aggregation: Aggregation) -> str:
    if backend == "pairwise":
        return ", every pair of domains with its own link"
    return f", all links between domains alike (reduction of their figures: {aggregation})"


def _ours(case: PlacementCase, backend: Backend, traces: TraceSet) -> str:
    """Command of our engine."""
    module = "unaware" if backend == "unaware" else "aware"
    extension = ["--multi-dimensional"] if network_options(case).multi_dimensional else []
    return _command(f"python -m astra_sim.{module}", [*_flags(traces), *extension])


def _original(backend: Backend, traces: TraceSet) -> str:
    """Command of the original's program."""
    return _command(f'"$ASTRA_SIM_BIN"/{PROGRAMS[backend]}', _flags(traces))


def _flags(traces: TraceSet) -> list[str]:
    flags = [f"--{name}={value}" for name, value in input_flags(traces).items()]
    return [*flags, "--logging-folder=log"]


def _scripts(case: PlacementCase, backend: Backend, traces: TraceSet) -> dict[str, str]:
    """Scripts by name: the same commands, wherever they are started."""
    stand = 'cd "$(dirname "$0")" || exit\n'
    scripts = {"run.sh": f"#!/bin/sh\n{stand}exec {_ours(case, backend, traces)}\n"}
    if why_only_ours(case, backend) is None:
        find = 'ASTRA_SIM_BIN=$(cd "${ASTRA_SIM_BIN:?folder of its programs}" && pwd) || exit\n'
        command = _original(backend, traces)
        scripts["run_original.sh"] = f"#!/bin/sh\n{find}{stand}exec {command}\n"
    return scripts


def _command(program: str, flags: list[str]) -> str:
    return " \\\n    ".join([program, *flags])


def _block(command: str) -> str:
    return f"```sh\n{command}\n```\n"
