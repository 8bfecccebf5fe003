"""Cases measured: by our ASTRA-sim engine, by the original's programs, or packet by packet."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Literal, TypedDict, Unpack

from astra_sim import IncompleteRunError, simulate
from calibration.cases.aggregation import DEFAULT_AGGREGATION, Aggregation
from calibration.cases.case import Measurement, PlacementCase
from calibration.cases.case_key import (
    RunKey,
    binary_version,
    case_key,
    describe_case,
    engine_version,
)
from calibration.reference.astra_config import (
    Backend,
    as_seen,
    network_config,
    network_options,
    system_config,
)
from calibration.reference.binaries import ReferenceRunError
from calibration.reference.chakra_trace import build_traces
from calibration.reference.finish_lines import Finish
from calibration.reference.npu_layout import Layout
from calibration.reference.pool import map_in_processes
from calibration.reference.reference_programs import program_in, run_original
from calibration.reference.trace_set import TraceSet
from calibration.runs.store import Store
from des.base.checks import require_count, require_positive
from des.base.lazy import lazy_imports

with lazy_imports(__name__):
    from calibration.packet import measure_packets

ReferenceBackend = Backend | Literal["ns3"]

Progress = Callable[[int, int], None]
"""Called with the number of different runs done, and of all."""

NS_PER_S = 1e9
TIMEOUT_S = 600.0
NUM_ATTEMPTS = 2

_PREPARATION_LIMIT_S = 300.0
"""Limit for making the inputs of a program, on top of its own limit. [s]"""


class ReferenceOptions(TypedDict, total=False):
    """Options of a run of a case, as `measure_case` describes them."""

    aggregation: Aggregation
    binaries: Path | None
    timeout_s: float
    num_attempts: int


def measure_case(
    case: PlacementCase,
    backend: ReferenceBackend,
    *,
    aggregation: Aggregation = DEFAULT_AGGREGATION,
    binaries: Path | None = None,
    timeout_s: float = TIMEOUT_S,
    num_attempts: int = NUM_ATTEMPTS,
) -> Measurement:
    """Run a case and say what came out.

    Parameters
    ----------
    backend
        ``unaware``, ``aware`` and ``pairwise`` see the world of `as_seen`; ``ns3`` simulates the
        packets of the world.
    aggregation
        Mean of unequal links, for backends that know equal ones only.
    binaries
        Folder of the original's programs; None means our own engine, in this process.
    timeout_s
        Limit for each attempt of a program; `measure_all` limits our own engine as well. [s]
    num_attempts
        Attempts with a program that fails before that is an error.

    Raises
    ------
    ValueError
        If the case cannot be expressed, or a field is out of range.
    ReferenceRunError
        If there is no result: a program that is missing, crashed, hung or printed something else; a
        run in which an NPU did not finish.
    """
    require_positive("measure", "timeout_s", timeout_s)
    require_count("measure", "num_attempts", num_attempts)
    if backend == "ns3":
        return measure_packets.measure_packets(case, limit_s=timeout_s)
    seen = as_seen(case, backend, aggregation)
    traces = build_traces(seen)
    if binaries is None:
        finishes = _run_engine(seen, backend, traces)
    else:
        finishes = run_original(
            seen, backend, traces, binaries, timeout_s=timeout_s, num_attempts=num_attempts
        )
    return _measurement(seen, traces, finishes)


def measure_all(
    cases: Sequence[PlacementCase],
    backend: ReferenceBackend,
    *,
    num_workers: int | None,
    store: Store | None = None,
    progress: Progress | None = None,
    **options: Unpack[ReferenceOptions],
) -> list[Measurement]:
    """Run cases, each as `measure_case` does: in processes, several at a time, or here.

    Parameters
    ----------
    num_workers
        Processes at a time; the results do not depend on it. None: one case after the other in this
        process, where nothing limits the time of our own engine.
    store
        Runs that it holds are not repeated; new ones are kept in it as they come.
    progress
        Called at the beginning and after every run.
    **options
        Those of `measure_case`; ``timeout_s`` limits each case, also where our own engine runs it.

    Returns
    -------
    list of Measurement
        In the order of the cases. Equal cases are run once.

    Raises
    ------
    ValueError, ReferenceRunError
        As `measure_case`; the first run that fails ends all others.
    """
    version = _version(backend, options)
    keys = [_key(case, backend, options, version) for case in cases]
    cases_of = dict(zip(keys, cases, strict=True))
    found: dict[RunKey, Measurement] = {}
    for key in cases_of:
        kept = None if store is None else store.get(key)
        if kept is not None:
            found[key] = kept
    tell = progress or (lambda *_: None)
    tell(len(found), len(cases_of))
    missing = [key for key in cases_of if key not in found]
    task, left = (
        partial(measure_case, backend=backend, **options),
        [cases_of[key] for key in missing],
    )
    limit_s = _limit_s(backend, options)
    outcomes = (
        _here(task, left)
        if num_workers is None
        else map_in_processes(task, left, num_workers=num_workers, timeout_s=limit_s)
    )
    with closing(outcomes):
        for position, outcome in outcomes:
            key = missing[position]
            if isinstance(outcome, Exception):
                raise _explain(outcome, cases_of[key])
            found[key] = outcome
            if store is not None:
                store.put(key, outcome, describe_case(cases_of[key]))
            tell(len(found), len(cases_of))
    return [found[key] for key in keys]


def _here(
    task: Callable[[PlacementCase], Measurement], cases: Sequence[PlacementCase]
) -> Generator[tuple[int, Measurement | Exception], None, None]:
    """Do what `map_in_processes` does, in this process."""
    for position, case in enumerate(cases):
        try:
            outcome: Measurement | Exception = task(case)
        except (ValueError, ReferenceRunError) as error:
            outcome = error
        yield position, outcome


def run_key(
    case: PlacementCase, backend: ReferenceBackend, **options: Unpack[ReferenceOptions]
) -> RunKey:
    """Make the key under which a `Store` keeps what `measure_case` gives for the same arguments.

    Raises
    ------
    ValueError, ReferenceRunError
        If a program is missing or cannot be read.
    """
    return _key(case, backend, options, _version(backend, options))


def _key(
    case: PlacementCase, backend: ReferenceBackend, options: ReferenceOptions, version: str
) -> RunKey:
    aggregation = options.get("aggregation", DEFAULT_AGGREGATION)
    keeps_figures = backend == "ns3" or (backend == "pairwise" and case.granularity == "domain")
    return case_key(case, backend, None if keeps_figures else aggregation, version)


def _version(backend: ReferenceBackend, options: ReferenceOptions) -> str:
    if backend == "ns3":
        return measure_packets.packets_version()
    binaries = options.get("binaries")
    if binaries is None:
        return engine_version()
    return binary_version(program_in(binaries, backend))


def _limit_s(backend: ReferenceBackend, options: ReferenceOptions) -> float:
    """Time limit of a case in a process."""
    limit_s = options.get("timeout_s", TIMEOUT_S)
    if backend != "ns3" and options.get("binaries") is None:
        return limit_s
    return options.get("num_attempts", NUM_ATTEMPTS) * limit_s + _PREPARATION_LIMIT_S


def _run_engine(seen: PlacementCase, backend: Backend, traces: TraceSet) -> tuple[Finish, ...]:
    system, network = system_config(seen), network_config(seen, backend)
    try:
        result = simulate(
            traces.traces,
            system,
            network,
            groups=traces.groups,
            backend="unaware" if backend == "unaware" else "aware",
            options=network_options(seen),
        )
        return tuple(
            Finish(cycles=each.finish_cycles, exposed_cycles=each.exposed_communication_cycles)
            for each in sorted(result.ranks, key=lambda each: each.rank)
        )
    except (ValueError, IncompleteRunError) as error:
        raise ReferenceRunError(f"our engine, backend {backend}: {error}") from error


def _measurement(seen: PlacementCase, traces: TraceSet, finishes: Sequence[Finish]) -> Measurement:
    """Turn cycles into what both simulators measure."""
    exposed_s = {rank: each.exposed_cycles / NS_PER_S for rank, each in enumerate(finishes)}
    return Measurement(
        makespan_s=max(finish.cycles for finish in finishes) / NS_PER_S,
        communication_bytes=float(traces.bytes_between_domains),
        exposed_s=Layout(seen).exposed_of_domains(exposed_s),
    )


def _explain(error: Exception, case: PlacementCase) -> Exception:
    """Name the case of an error; what ended its process is a run without a result."""
    named = f"case {' | '.join(map(str, case.plan.placements))}, {case.plan.schedule}: {error}"
    if isinstance(error, ReferenceRunError | TimeoutError | ChildProcessError):
        explained: Exception = ReferenceRunError(named)
    elif isinstance(error, ValueError):
        explained = ValueError(named)
    else:
        return error
    explained.__cause__ = error
    return explained
