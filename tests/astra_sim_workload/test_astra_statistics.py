"""Statistics of a finished rank, from spans made by hand, and the lines about them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astra_sim.core.result import NodeSpan, RankResult
from astra_sim.files.errors import NodeError
from astra_sim.files.execution_trace import NodeType, TraceNode
from astra_sim.files.system_config import Algorithm, SystemConfig
from astra_sim.workload.statistics import (
    covered_ns,
    rank_statistics,
    report_finish,
    statistics_lines,
)

PLAIN = SystemConfig(all_reduce=(Algorithm(name="ring"),))
ROOFLINE = SystemConfig(roofline_enabled=True, local_mem_bw_gb_per_s=100.0, peak_perf_tflops=1.0)


def span(start_ns, end_ns, kind=NodeType.COMP, *, is_cpu=False, **attributes):
    node = TraceNode(
        id=start_ns,
        name="",
        type=kind,
        dependencies=(),
        duration_ns=0,
        is_cpu=is_cpu,
        attributes=attributes,
    )
    return NodeSpan(node=node, start_ns=start_ns, end_ns=end_ns)


def lines_of(spans, system=PLAIN):
    return statistics_lines(rank_statistics(0, spans, system))


def finish(spans, system=PLAIN):
    """Lines that finishing prints, the results it leaves, and the error it ends with."""
    lines, finished = [], []
    try:
        report_finish(
            rank=3,
            now_ns=90,
            exposed_ns=20,
            spans=spans,
            system=system,
            log=lambda logger, level, message: lines.append(f"[{logger}] [{level}] {message}"),
            finished=finished,
        )
    except NodeError as error:
        return lines, finished, error
    return lines, finished, None


def test_overlapping_spans_count_once():
    """[0, 10], [5, 20], [6, 8] and [30, 31] cover 20 + 1."""
    assert covered_ns([span(30, 31), span(5, 20), span(0, 10), span(6, 8)]) == 21


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20))))
def test_cover_is_the_number_of_covered_ticks(pairs):
    ticks = {tick for start, length in pairs for tick in range(start, start + length)}

    assert covered_ns([span(start, start + length) for start, length in pairs]) == len(ticks)


def test_wall_gpu_and_communication_times_and_their_overlap():
    """Computation 0-50, a collective 40-90 and a receive 45-60: 50 + 50 - 90 overlap."""
    spans = [
        span(0, 50),
        span(40, 90, NodeType.COMM_COLL),
        span(45, 60, NodeType.COMM_RECV),
    ]

    assert lines_of(spans) == [
        "Wall time: 90",
        "Comm time: 50",
        "GPU time: 50",
        "Total compute-communication overlap: 10",
    ]


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([span(5, 7, NodeType.COMM_SEND)], ["Wall time: 7", "Comm time: 2"]),
        ([span(5, 7)], ["Wall time: 7", "GPU time: 2"]),
        (
            [span(0, 5), span(5, 9, NodeType.COMM_RECV)],
            ["Wall time: 9", "Comm time: 4", "GPU time: 5"],
        ),
    ],
)
def test_what_there_is_not_has_no_line(spans, expected):
    assert lines_of(spans) == expected


def test_roofline_means_are_weighted_with_durations():
    """At 100 GB/s and 1 TFLOPS the ridge is at 10 operations per byte.

    For 99 ns at intensity 20, which is bound by the peak and needs half the bandwidth; for 100 ns
    at intensity 5, which reaches half the peak with all the bandwidth: divided by 1 + 199.
    """
    spans = [
        span(0, 99, num_ops=2000, tensor_size=100),
        span(100, 200, num_ops=500, tensor_size=100),
    ]

    assert lines_of(spans, ROOFLINE)[2:] == [
        "Compute bound percentage: 49.500%",
        "Average compute utilization: 74.500%",
        "Average memory utilization: 74.750%",
        "Average operation intensity: 12.400",
    ]


def test_roofline_of_a_rank_that_never_computes_is_zero():
    lines = lines_of([span(0, 9, NodeType.COMM_SEND)], ROOFLINE)

    assert lines[2] == "Compute bound percentage: 0.000%"
    assert lines[5] == "Average operation intensity: 0.000"


def test_computation_of_nothing_does_not_count():
    """A computation with ``tensor_size`` 0 takes no time."""
    counted = span(0, 99, num_ops=2000, tensor_size=100)
    nothing = span(99, 99, num_ops=1, tensor_size=0)

    assert lines_of([counted, nothing], ROOFLINE) == lines_of([counted], ROOFLINE)


def test_replayed_computation_needs_no_operations():
    replay = SystemConfig(
        roofline_enabled=True, replay_only=True, local_mem_bw_gb_per_s=1.0, peak_perf_tflops=1.0
    )

    assert "Average compute utilization: 0.000%" in lines_of([span(0, 9)], replay)


def test_no_peak_is_no_error():
    """Zero peak: performance and its share of the peak are 0/0, as floating point has it."""
    slow = SystemConfig(roofline_enabled=True, local_mem_bw_gb_per_s=1.0, peak_perf_tflops=0.0)
    statistics = rank_statistics(0, [span(0, 9, num_ops=1, tensor_size=1)], slow)

    assert math.isnan(statistics.roofline.compute_fraction)


def test_finish_prints_in_order_and_keeps_the_result():
    lines, (result,), error = finish([span(0, 70), span(70, 90, NodeType.COMM_SEND)])

    assert error is None
    assert lines == [
        "[workload] [info] sys[3] finished, 90 cycles, exposed communication 20 cycles.",
        "[statistics] [info] sys[3]. Post statistics processing start.",
        "[statistics] [info] sys[3]. Post statistics processing end.",
        "[statistics] [info] sys[3], Wall time: 90",
        "[statistics] [info] sys[3], Comm time: 20",
        "[statistics] [info] sys[3], GPU time: 70",
    ]
    assert (result.rank, result.finish_cycles, result.exposed_communication_cycles) == (3, 90, 20)
    assert (result.statistics.wall_ns, result.statistics.gpu_ns) == (90, 70)


@pytest.mark.parametrize(
    "odd",
    [
        span(0, 1, is_cpu=True),
        span(0, 1, NodeType.MEM_LOAD),
        span(0, 1, NodeType.MEM_STORE),
        span(0, 0, NodeType.INVALID),
    ],
)
def test_node_without_a_place_in_the_statistics_ends_them_after_the_finish_line(odd):
    lines, finished, error = finish([span(5, 90), odd])

    assert "node 0" in str(error)
    assert [line.partition("] sys[3]")[2][:10] for line in lines] == [" finished,", ". Post sta"]
    assert finished == [
        RankResult(rank=3, finish_cycles=90, exposed_communication_cycles=20, statistics=None)
    ]
