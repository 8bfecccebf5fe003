"""The timeline file of the ASTRA-sim engine: its slices, threads and arrows."""

import json
from collections import Counter
from itertools import pairwise

import pytest
from astra_runs import run
from astra_workloads import cases
from chrome_events import by_thread, names_in
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from astra_sim.core.result import NodeSpan
from astra_sim.files.execution_trace import NodeType, TraceNode
from astra_sim.run.perfetto import trace_events, write_perfetto_trace


def span(node_id, kind, start_ns, end_ns, *, name="", is_cpu=False, **attributes):
    node = TraceNode(
        id=node_id,
        name=name,
        type=kind,
        dependencies=(),
        duration_ns=0,
        is_cpu=is_cpu,
        attributes=attributes,
    )
    return NodeSpan(node=node, start_ns=start_ns, end_ns=end_ns)


def sending(node_id, start_ns, end_ns, target, *, tag=7, num_bytes=64):
    message = {"comm_dst": target, "comm_tag": tag, "comm_size": num_bytes}
    return span(node_id, NodeType.COMM_SEND, start_ns, end_ns, **message)


def receiving(node_id, start_ns, end_ns, source, *, tag=7, num_bytes=64):
    message = {"comm_src": source, "comm_tag": tag, "comm_size": num_bytes}
    return span(node_id, NodeType.COMM_RECV, start_ns, end_ns, **message)


TWO_NPUS = (
    [
        span(1, NodeType.COMP, 0, 1500, name="forward"),
        sending(2, 1500, 4000, 1),
        sending(3, 4000, 6500, 1),
        span(4, NodeType.COMM_COLL, 6500, 9000, comm_type=0, comm_size=512, pg_name="3"),
        span(5, NodeType.MEM_LOAD, 9000, 9001, tensor_size=10),
        span(6, NodeType.COMP, 100, 200, is_cpu=True),
    ],
    [
        receiving(10, 0, 4000, 0),
        receiving(11, 0, 6500, 0, tag=500_000_007),
        span(12, NodeType.COMM_COLL, 6500, 9000, comm_type=0, comm_size=512, pg_name="3"),
    ],
)
"""Spans of two NPUs; tags count modulo 500 000 000, so 11 receives what 3 sends."""


def of_phase(spans, phase, **options):
    return [event for event in trace_events(spans, **options) if event["ph"] == phase]


def names_of(spans, what):
    return names_in(of_phase(spans, "M"), what)


def bound_slices(spans, flows):
    """Slice that each end of an arrow binds to: the one that began last on its thread by then."""
    threads = by_thread(of_phase(spans, "X"))
    return [
        max(
            (event for event in threads[flow["pid"], flow["tid"]] if event["ts"] <= flow["ts"]),
            key=lambda event: event["ts"],
        )
        for flow in flows
    ]


@st.composite
def runs(draw):
    """Records of any run that ends."""
    return run(draw(cases("unaware")), "unaware").spans


def test_hand_made_spans_become_these_slices():
    processes, threads = names_of(TWO_NPUS, "process_name"), names_of(TWO_NPUS, "thread_name")

    slices = [
        (
            processes[event["pid"], 0],
            threads[event["pid"], event["tid"]],
            event["name"],
            event["cat"],
            event["ts"],
            event["dur"],
        )
        for event in of_phase(TWO_NPUS, "X")
    ]

    message = "tag 7, 64 bytes"
    total = ("ALL_REDUCE, 512 bytes, group 3", "COMM_COLL", 6.5, 2.5)
    assert slices == [
        ("NPU 0", "compute", "forward", "COMP", 0.0, 1.5),
        ("NPU 0", "communication", f"send to 1, {message}", "COMM_SEND", 1.5, 2.5),
        ("NPU 0", "communication", f"send to 1, {message}", "COMM_SEND", 4.0, 2.5),
        ("NPU 0", "communication", *total),
        ("NPU 0", "memory", "load 10 bytes", "MEM_LOAD", 9.0, 0.001),
        ("NPU 0", "cpu", "node 6", "COMP", 0.1, 0.1),
        ("NPU 1", "communication", *total),
        ("NPU 1", "receives", f"receive from 0, {message}", "COMM_RECV", 0.0, 4.0),
        ("NPU 1", "receives 2", f"receive from 0, {message}", "COMM_RECV", 0.0, 6.5),
    ]


def test_an_arrow_leads_from_the_start_of_a_send_to_the_end_of_its_receive():
    starts, ends = of_phase(TWO_NPUS, "s"), of_phase(TWO_NPUS, "f")

    arrows = [
        (sent["args"]["id"], start["ts"], received["args"]["id"], end["ts"])
        for sent, start, received, end in zip(
            bound_slices(TWO_NPUS, starts), starts, bound_slices(TWO_NPUS, ends), ends, strict=True
        )
    ]

    assert arrows == [(2, 1.5, 10, 3.999), (3, 4.0, 11, 6.499)]
    assert [event["id"] for event in starts] == [event["id"] for event in ends] == [0, 1]


def test_an_arrow_ends_in_a_receive_that_takes_no_time():
    """A message delivered before its receive began; another receive begins when this one ends."""
    spans = ([sending(1, 0, 10, 1)], [receiving(2, 30, 30, 0), receiving(3, 30, 90, 0, tag=8)])
    (end,) = of_phase(spans, "f")
    (received,) = bound_slices(spans, [end])

    assert end["ts"] == 0.03
    assert received["args"]["id"] == 2


def test_a_message_without_its_counterpart_has_no_arrow():
    spans = ([sending(1, 0, 10, 1), sending(2, 10, 20, 1, tag=8)], [receiving(3, 0, 10, 0)])

    (sent,) = bound_slices(spans, of_phase(spans, "s"))

    assert sent["args"]["id"] == 1
    assert len(of_phase(spans, "f")) == 1


def test_a_replay_shows_the_nodes_own_names_and_no_arrows():
    """Its nodes need not even have the attributes of a message."""
    spans = ([span(1, NodeType.COMM_SEND, 0, 5, name="to the right")],)

    assert [event["name"] for event in of_phase(spans, "X", replays=True)] == ["to the right"]
    assert of_phase(spans, "s", replays=True) == []


def test_times_are_exact_to_the_nanosecond():
    start_ns = 123_456_789_012_345
    (event,) = of_phase(([span(1, NodeType.COMP, start_ns, start_ns + 1)],), "X")

    assert json.dumps([event["ts"], event["dur"]]) == "[123456789012.345, 0.001]"


@settings(max_examples=examples(30), deadline=None)
@given(spans=runs())
def test_every_node_is_one_slice_and_slices_of_a_thread_follow_each_other(spans):
    slices = of_phase(spans, "X")

    recorded = Counter(
        (rank + 1, each.node.id, each.start_ns / 1000, (each.end_ns - each.start_ns) / 1000)
        for rank, of_rank in enumerate(spans)
        for each in of_rank
    )
    assert recorded == Counter(
        (event["pid"], event["args"]["id"], event["ts"], event["dur"]) for event in slices
    )
    for thread in by_thread(slices).values():
        for earlier, later in pairwise(thread):
            assert earlier["ts"] < later["ts"]
            assert earlier["ts"] + earlier["dur"] <= later["ts"] + 1e-6


@settings(max_examples=examples(30), deadline=None)
@given(spans=runs())
def test_every_message_is_an_arrow_from_its_send_to_a_receive_that_ends_no_earlier(spans):
    sends = [event for event in of_phase(spans, "X") if event["cat"] == "COMM_SEND"]
    starts, ends = of_phase(spans, "s"), of_phase(spans, "f")

    assert len(starts) == len(ends) == len(sends)
    bound = bound_slices(spans, starts), bound_slices(spans, ends)
    for start, end, sent, received in zip(starts, ends, *bound, strict=True):
        assert (sent["cat"], received["cat"]) == ("COMM_SEND", "COMM_RECV")
        assert (sent["args"]["peer"] + 1, sent["pid"]) == (
            received["pid"],
            received["args"]["peer"] + 1,
        )
        assert sent["args"]["tag"] == received["args"]["tag"]
        assert sent["args"]["bytes"] == received["args"]["bytes"]
        assert start["ts"] <= end["ts"]
        assert sent["ts"] + sent["dur"] <= received["ts"] + received["dur"] + 1e-6
    assert len({(flow["tid"], flow["ts"]) for flow in starts}) == len(starts)


@settings(max_examples=examples(20), deadline=None)
@given(spans=runs())
def test_the_file_is_json_with_named_threads_and_equal_runs_give_equal_bytes(
    spans, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("trace")
    write_perfetto_trace(folder / "trace.json", spans)
    written = (folder / "trace.json").read_bytes()
    write_perfetto_trace(folder / "trace.json", [list(of_rank) for of_rank in spans])

    assert (folder / "trace.json").read_bytes() == written
    assert [path.name for path in folder.iterdir()] == ["trace.json"]
    content = json.loads(written)
    assert content["traceEvents"] == list(trace_events(spans))
    processes, threads = names_of(spans, "process_name"), names_of(spans, "thread_name")
    assert len({thread for _, thread in threads}) == len(threads)
    required = {
        "X": {"name", "cat", "ts", "dur", "pid", "tid", "args"},
        "M": {"name", "pid", "tid", "args"},
        "s": {"name", "cat", "ts", "id", "pid", "tid"},
        "f": {"name", "cat", "ts", "id", "pid", "tid", "bp"},
    }
    for event in content["traceEvents"]:
        assert required[event["ph"]] <= event.keys()
        assert (event["pid"], 0) in processes
        if event["ph"] != "M":
            assert (event["pid"], event["tid"]) in threads


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    """A collective that is none cannot be described; the error comes in the midst of the file."""
    path = tmp_path / "trace.json"
    write_perfetto_trace(path, TWO_NPUS)
    before = path.read_bytes()
    broken = [*TWO_NPUS[0], span(9, NodeType.COMM_COLL, 0, 1, comm_type=77, comm_size=1)]

    with pytest.raises(ValueError, match="77"):
        write_perfetto_trace(path, (broken, TWO_NPUS[1]))

    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["trace.json"]


def test_a_folder_in_the_way_is_refused(tmp_path):
    (tmp_path / "trace.json").mkdir()

    with pytest.raises(IsADirectoryError, match=r"trace\.json"):
        write_perfetto_trace(tmp_path / "trace.json", TWO_NPUS)

    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]
