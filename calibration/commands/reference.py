"""Measuring cases by the reference that the flags name, with a bar of progress."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calibration.cases.aggregation import DEFAULT_AGGREGATION, Aggregation
from calibration.cases.case import Measurement, PlacementCase
from calibration.commands.console import progress_bar
from calibration.commands.flags import DEFAULT_STORE
from calibration.commands.placements import SamplingFlags
from calibration.measuring.environment import BINARIES_VARIABLE
from calibration.measuring.measure import TIMEOUT_S, ReferenceBackend, measure_all
from calibration.packet.process import ns3_version
from calibration.reference.astra_config import as_seen
from calibration.reference.export import PROGRAMS
from calibration.runs.store import Store
from des.base.checks import require_count, require_positive
from des.base.command import UsageError
from des.base.flags import option


def workers_option() -> int:
    """Make the flag ``--workers`` of a command that measures."""
    return option(os.cpu_count() or 1, "processes at a time", check=require_count)


def time_limit_option() -> float:
    """Make the flag ``--time-limit`` of a command that measures."""
    return option(TIMEOUT_S, "limit of a run, in seconds", check=require_positive)


def kept_runs_option() -> Path | None:
    """Make the flag ``--store`` of a command that measures."""
    return option(DEFAULT_STORE, "file of all runs, none of which is repeated; none: keep no runs")


def store_of_flag(path: Path | None) -> Store | None:
    """Open the store of a flag; its folder is made."""
    if path is None:
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    return Store.open(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Reference simulator of the cases; ``binaries`` None means our own engine."""

    aggregation: Aggregation
    binaries: Path | None
    num_workers: int
    timeout_s: float
    store: Store | None

    def seen(
        self, cases: Sequence[PlacementCase], backend: ReferenceBackend
    ) -> list[PlacementCase]:
        """Return the cases in the world that a backend can express, as `des` simulates them."""
        if backend == "ns3":
            return list(cases)
        return [as_seen(case, backend, self.aggregation) for case in cases]

    def measure(
        self, cases: Sequence[PlacementCase], backend: ReferenceBackend
    ) -> list[Measurement]:
        """Measure all cases; runs that the store holds are not repeated."""
        with progress_bar(f"reference {backend}") as progress:
            bar = progress.add_task("", total=len(cases))
            return measure_all(
                cases,
                backend,
                num_workers=self.num_workers,
                store=self.store,
                progress=lambda done, whole: progress.update(bar, completed=done, total=whole),
                aggregation=self.aggregation,
                binaries=self._binaries(backend),
                timeout_s=self.timeout_s,
            )

    def _binaries(self, backend: ReferenceBackend) -> Path | None:
        return self.binaries if backend in PROGRAMS else None

    def describe(self, cases: Sequence[PlacementCase], backend: ReferenceBackend) -> str:
        """Describe the reference, and the world that both simulators run."""
        ours = self._binaries(backend) is None
        by = "our ASTRA-sim engine" if ours else "the original's ASTRA-sim program"
        if backend == "ns3":
            packets = cases[0].topology.transport.packets
            return (
                f"reference: ns-3, packets of {packets.segment_bytes} bytes over the links of the "
                f"world, {packets.congestion}, {packets.connections} connections"
            )
        text = f"reference: {by}, backend {backend}"
        if backend == "unaware":
            text += " (no queues: des runs with transport.sharing none)"
        num_reduced = sum(
            (seen.topology.domains, seen.topology.links)
            != (case.topology.domains, case.topology.links)
            for seen, case in zip(self.seen(cases, backend), cases, strict=True)
        )
        if not num_reduced:
            return text
        what = "figures inside domains" if backend == "pairwise" else "links"
        return (
            f"{text}; it knows one bandwidth and one latency only, so the unequal {what} of "
            f"{num_reduced} of {len(cases)} cases are made equal (network_aggregation "
            f"{self.aggregation}), and des runs the same reduced worlds"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceFlags(SamplingFlags):
    """Settings of drawn placements and of their measurement."""

    network_aggregation: Aggregation = option(
        DEFAULT_AGGREGATION,
        "one figure of unequal links, where the reference knows equal ones only",
    )
    astra_bin: Path | None = option(
        None,
        "folder of the original's programs for unaware and aware; none: "
        f"${BINARIES_VARIABLE}, if set, else our own engine",
    )
    workers: int = workers_option()
    time_limit: float = time_limit_option()
    store: Path | None = kept_runs_option()

    def reference(self, backends: Sequence[ReferenceBackend]) -> Reference:
        """Make the reference of the backends; the environment may name the programs.

        Raises
        ------
        ValueError
            If a flag does not go with the backends, or the store cannot be opened.
        ReferenceRunError
            If the backend ``ns3`` is not installed.
        """
        if self.astra_bin is not None and not set(PROGRAMS) & set(backends):
            raise UsageError(f"--astra-bin has programs for {' and '.join(PROGRAMS)} only")
        variable = os.environ.get(BINARIES_VARIABLE)
        binaries = self.astra_bin or (Path(variable) if variable else None)
        self._require_one_slot(backends, binaries)
        if "ns3" in backends:
            ns3_version()
        store = store_of_flag(self.store)
        return Reference(
            aggregation=self.network_aggregation,
            binaries=binaries,
            num_workers=self.workers,
            timeout_s=self.time_limit,
            store=store,
        )

    def _require_one_slot(
        self, backends: Sequence[ReferenceBackend], binaries: Path | None
    ) -> None:
        """Refuse external programs where senders have more messages under way than they allow."""
        if binaries is None or not set(PROGRAMS) & set(backends):
            return
        endpoints = self.read_topology().transport.endpoints
        if endpoints != "one_in_flight":
            raise UsageError(
                f"the programs in {binaries}: have one communication slot per NPU, for --endpoints "
                f"one_in_flight, got {endpoints}; without --astra-bin and {BINARIES_VARIABLE} our "
                "own engine runs"
            )
