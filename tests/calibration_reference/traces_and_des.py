"""Makespans of traces on the engine, and of the same cases in `des`."""

from dataclasses import replace

import pytest
from strategies import plan, unit_workload, world
from trace_cases import makespan_s

from astra_sim import RunResult
from calibration.cases.case import Measurement, PlacementCase
from calibration.fit.prediction import predict
from calibration.reference.chakra_trace import TraceSet
from calibration.reference.npu_layout import Layout
from des import Transport

PAIRS = {"AB": (10.0, 1.0), "BA": (20.0, 2.0), "BC": (5.0, 0.5), "CB": (10.0, 1.0)}


def measured(case: PlacementCase, traces: TraceSet, result: RunResult) -> Measurement:
    """What the engine says, in seconds."""
    exposed_s = {rank.rank: rank.exposed_communication_cycles / 1e9 for rank in result.ranks}
    return Measurement(
        makespan_s=makespan_s(result),
        communication_bytes=traces.bytes_between_domains,
        exposed_s=Layout(case).exposed_of_domains(exposed_s),
    )


def assert_equal(
    case: PlacementCase, traces: TraceSet, result: RunResult, *, pauses_s: float = 0.0
) -> None:
    """Up to the rounding of every event to a nanosecond, and of every message to a byte.

    ``pauses_s`` is that of pauses, which are of whole microseconds.
    """
    found, predicted = measured(case, traces, result), predict(case)
    slowest = min(link.bandwidth_bytes_per_s for link in case.topology.links)
    num_nodes = sum(len(trace.nodes) for trace in traces.traces)
    rounding_s = num_nodes * (1e-9 + 0.5 / slowest) + pauses_s
    assert found.makespan_s == pytest.approx(predicted.makespan_s, rel=1e-6, abs=rounding_s)
    assert found.exposed_s == pytest.approx(
        predicted.exposed_s, rel=1e-6, abs=rounding_s + 1e-6 * predicted.makespan_s
    )
    assert found.communication_bytes == pytest.approx(
        predicted.communication_bytes, rel=1e-5, abs=0.5 * num_nodes
    )


def in_a_row(
    *domain_of_layer: int, endpoints: str = "overlapped", schedule: str = "1f1b"
) -> PlacementCase:
    """Layers of 1 s and 2 s on domains A, B and C in a row, four microbatches of 20 bytes."""
    return PlacementCase(
        topology=replace(world("ABC", PAIRS), transport=Transport(endpoints=endpoints)),
        workload=unit_workload(
            [(1.0, 2.0)] * len(domain_of_layer), num_microbatches=4, message_bytes=20.0
        ),
        plan=plan(*domain_of_layer, schedule=schedule),
    )
