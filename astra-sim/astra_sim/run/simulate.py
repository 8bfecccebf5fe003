"""A run: execution traces, a system and a network in; when every rank finishes out."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from astra_sim.core.events import Log
from astra_sim.core.result import IncompleteRunError, RunResult
from astra_sim.files.comm_groups import read_comm_groups
from astra_sim.files.execution_trace import Trace, read_traces
from astra_sim.files.memory_config import MemoryConfig, read_memory_config
from astra_sim.files.network_config import NetworkConfig, read_network_config
from astra_sim.files.system_config import SystemConfig, read_system_config
from astra_sim.network import Backend
from astra_sim.run.report import announce_rings, report_end
from astra_sim.run.simulation import RankSimulation, RunOptions

__all__ = ["RunOptions", "simulate"]


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause garbage collection: a run holds many objects and leaves few cycles behind."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_collector_paused()
def simulate(
    workload: str | Path | Sequence[Trace],
    system: str | Path | SystemConfig,
    network: str | Path | NetworkConfig,
    *,
    memory: str | Path | MemoryConfig | None = None,
    groups: str | Path | Mapping[int, tuple[int, ...]] | None = None,
    backend: Backend = "unaware",
    options: RunOptions | None = None,
    strict: bool = True,
    log: Log | None = None,
) -> RunResult:
    """Simulate the execution traces of all ranks.

    Parameters
    ----------
    workload
        Traces, one for each NPU of the network, rank by rank; or the prefix of their files.
    system, network, memory
        Configurations or their files; without ``memory`` memory nodes are refused.
    groups
        Ranks of each communicator group, in ring order, by its number; or their file.
    backend
        ``unaware``: messages never disturb each other; ``aware``: they queue on links.
    options
        Settings that the command takes as flags.
    strict
        Raise if a rank does not finish or a node never runs, rather than say so in ``diagnosis``.
    log
        Called with logger, level and message of every line as it comes.

    Returns
    -------
    RunResult
        Finish and exposed communication of every rank, the lines about them, and who waits for
        what if something never ran.

    Raises
    ------
    IncompleteRunError
        If ``strict`` and the run did not end; it holds the result.
    AstraSimError
        If the inputs cannot be simulated; its class carries the command's exit code.
    """
    network = read_network_config(network) if isinstance(network, str | Path) else network
    system = read_system_config(system) if isinstance(system, str | Path) else system
    memory = read_memory_config(memory) if isinstance(memory, str | Path) else memory
    groups = read_comm_groups(groups) if isinstance(groups, str | Path) else groups
    if isinstance(workload, str | Path):
        workload = read_traces(workload, network.num_npus)
    lines: list[str] = []

    def keep(logger: str, level: str, message: str) -> None:
        lines.append(f"[{logger}] [{level}] {message}")
        if log is not None:
            log(logger, level, message)

    simulation = RankSimulation(
        workload,
        system,
        network,
        memory=memory or MemoryConfig(),
        groups=groups or {},
        backend=backend,
        options=options or RunOptions(),
        log=keep,
    )
    announce_rings(system, network, groups or {}, keep)
    simulation.run()
    report_end(simulation.in_flight, keep)
    result = simulation.result(tuple(lines))
    if strict and not result.is_complete:
        raise IncompleteRunError(result)
    return result
