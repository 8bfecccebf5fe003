"""The timeline file: what its slices, threads and arrows say about an iteration."""

import json
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from chrome_events import by_thread, names_in
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import cases, plan, unit_workload, world

from des import Placement, Plan, build_workload, read_topology, simulate
from des.views.chrome_trace import chrome_trace, chrome_trace_json, write_chrome_trace
from des.worlds import EAST_CENTRAL_WEST

ROUNDING_US = 1e-3


@st.composite
def results(draw):
    """Any iteration, on links that may move, over routes that may have several hops."""
    topology, workload, chosen = draw(cases())
    topology = topology.draw_epoch(np.random.default_rng(draw(st.integers(0, 9))))
    return simulate(topology, workload, chosen)


def round_figures():
    """Two equal stages: forward 1 s, backward 2 s, 1 s on the wire and 0.5 s of flight."""
    topology = world("AB", {"AB": (1.0, 0.5), "BA": (1.0, 0.5)})
    workload = unit_workload([(1.0, 2.0)] * 2, num_microbatches=1, message_bytes=1.0)
    return simulate(topology, workload, plan(0, 1))


def events_of(result, phase):
    return [event for event in chrome_trace(result)["traceEvents"] if event["ph"] == phase]


def names_of(result, what):
    return names_in(events_of(result, "M"), what)


def test_a_hand_computed_iteration_becomes_these_slices():
    result = round_figures()
    processes, threads = names_of(result, "process_name"), names_of(result, "thread_name")

    slices = [
        (
            processes[event["pid"], 0],
            threads[event["pid"], event["tid"]],
            event["name"],
            event["cat"],
            event["ts"],
            event["dur"],
        )
        for event in events_of(result, "X")
    ]

    here, there = ("A", "stage 0, layers 0-0"), ("B", "stage 1, layers 1-1")
    assert sorted(slices, key=lambda event: event[4]) == [
        (*here, "F0", "forward", 0.0, 1e6),
        ("WAN links", "A→B", "activation 0 of stage 0", "activation", 1e6, 1e6),
        (*there, "F0", "forward", 2.5e6, 1e6),
        (*there, "B0", "backward", 3.5e6, 2e6),
        ("WAN links", "B→A", "gradient 0 of stage 1", "gradient", 5.5e6, 1e6),
        (*here, "B0", "backward", 7e6, 2e6),
    ]


@settings(max_examples=examples(30))
@given(result=results())
def test_slices_of_one_thread_follow_each_other(result):
    for slices in by_thread(events_of(result, "X")).values():
        slices.sort(key=lambda event: (event["ts"], event["dur"]))
        for earlier, later in pairwise(slices):
            assert earlier["dur"] >= 0
            assert earlier["ts"] + earlier["dur"] <= later["ts"] + ROUNDING_US / 2


@settings(max_examples=examples(30))
@given(result=results())
def test_slices_add_up_to_the_busy_times(result):
    totals_us = defaultdict(float)
    for event in events_of(result, "X"):
        place = event["args"]["stage"] if "stage" in event["args"] else event["tid"]
        totals_us["stage" in event["args"], place] += event["dur"]

    tolerance_us = ROUNDING_US * (1 + len(result.spans) + len(result.transfers))
    for index, stage in enumerate(result.stages):
        assert totals_us[True, index] == pytest.approx(stage.busy_s * 1e6, abs=tolerance_us)
    for index, link in enumerate(result.links):
        assert totals_us[False, index] == pytest.approx(link.busy_s * 1e6, abs=tolerance_us)


@settings(max_examples=examples(30))
@given(result=results())
def test_the_file_is_json_whose_events_have_the_required_keys(result):
    content = json.loads(chrome_trace_json(result))
    required = {
        "X": {"name", "cat", "ts", "dur", "pid", "tid", "args"},
        "M": {"name", "pid", "tid", "args"},
        "s": {"name", "cat", "ts", "id", "pid", "tid"},
        "t": {"name", "cat", "ts", "id", "pid", "tid"},
        "f": {"name", "cat", "ts", "id", "pid", "tid", "bp"},
    }

    assert content == chrome_trace(result)
    for event in content["traceEvents"]:
        assert required[event["ph"]] <= event.keys()
    threads = names_of(result, "thread_name")
    processes = names_of(result, "process_name")
    for event in content["traceEvents"]:
        assert (event["pid"], 0) in processes
        if event["ph"] != "M":
            assert (event["pid"], event["tid"]) in threads


@settings(max_examples=examples(30))
@given(result=results())
def test_every_message_is_an_arrow_from_its_pass_over_its_wires_to_the_next_pass(result):
    slices = by_thread(events_of(result, "X"))
    flows = defaultdict(list)
    for phase in "stf":
        for event in events_of(result, phase):
            flows[event["id"]].append(event)

    num_microbatches = len({span.microbatch for span in result.spans})
    assert len(flows) == 2 * (len(result.stages) - 1) * num_microbatches
    assert sum(len(steps) - 2 for steps in flows.values()) == len(result.transfers)
    for steps in flows.values():
        first, *wires, last = steps
        assert (first["ph"], last["ph"]) == ("s", "f")
        for earlier, later in pairwise([first, *sorted(wires, key=lambda e: e["ts"]), last]):
            assert earlier["ts"] <= later["ts"]
        for step in steps:
            around = [
                event
                for event in slices[step["pid"], step["tid"]]
                if event["ts"] <= step["ts"] <= event["ts"] + event["dur"] + ROUNDING_US
            ]
            assert around, step


@settings(max_examples=examples(30))
@given(result=results())
def test_equal_results_give_equal_bytes(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "trace.json"

    write_chrome_trace(result, path)

    assert path.read_bytes() == chrome_trace_json(result) == chrome_trace_json(result)
    assert [file.name for file in path.parent.iterdir()] == ["trace.json"]


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    (tmp_path / "trace.json").mkdir()

    with pytest.raises(OSError, match=r"trace\.json"):
        write_chrome_trace(round_figures(), tmp_path / "trace.json")

    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]


def test_a_domain_without_layers_is_no_process():
    workload = build_workload("llama2_7b", num_microbatches=2)
    on_west = Plan(placement=Placement.parse("2*32"))

    result = simulate(read_topology(EAST_CENTRAL_WEST), workload, on_west)

    assert set(names_of(result, "process_name").values()) == {"West"}
