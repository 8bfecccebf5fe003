"""The commands: lines, exit codes, log folder, and one clear line for whatever is wrong."""

import json
import re

import pytest
from astra_traces import (
    ALL_REDUCE,
    Case,
    collective,
    compute,
    network_file,
    receive,
    send,
    system_file,
)
from command_runs import ALL_REDUCES, PAIR, ZERO_BYTES_AT_LAST, finished

from astra_sim import aware, unaware
from astra_sim.files.execution_trace import NodeType, TraceNode
from astra_sim.files.network_config import Dimension, NetworkConfig
from astra_sim.files.system_config import Algorithm, SystemConfig
from astra_sim.run.report import announce_rings, report_end

PREFIX = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\] (\[\w+\] \[\w+\] .*)")
LONELY_RECEIVE = Case(
    network=network_file(npus=2),
    ranks=[[compute(0, 3)], [compute(0, 2), receive(1, 0, 64, 5, [0]), compute(2, 1, [1])]],
)


def printed(text):
    """Lines of a command's output, without time stamps."""
    matches = [PREFIX.fullmatch(line) for line in text.splitlines()]
    assert all(matches)
    return [match[1] for match in matches]


@pytest.mark.parametrize("main", [unaware.main, aware.main])
def test_lines_of_a_whole_run(main, capsys, tmp_path):
    """The first worked value: 33829 cycles; the wall time is communication alone."""
    assert main(ALL_REDUCES.write(tmp_path)) == 0

    output = capsys.readouterr()
    lines = printed(output.out)
    assert output.err == ""
    assert finished(output.out) == dict.fromkeys(range(4), 33829)
    assert [line for line in lines if "sys[2]" in line] == [
        "[workload] [info] sys[2] finished, 33829 cycles, exposed communication 33829 cycles.",
        "[statistics] [info] sys[2]. Post statistics processing start.",
        "[statistics] [info] sys[2]. Post statistics processing end.",
        "[statistics] [info] sys[2], Wall time: 33829",
        "[statistics] [info] sys[2], Comm time: 33829",
    ]
    assert lines[-1] == "[system] [warning] Exiting"
    assert "[system] [info] all-reduce ring of sys[0], dimension 0: 0, 1, 2, 3" in lines


def test_log_folder_receives_the_lines(capsys, tmp_path):
    unaware.main(ALL_REDUCES.write(tmp_path))

    assert (tmp_path / "log" / "log.log").read_text("utf-8") == capsys.readouterr().out
    assert (tmp_path / "log" / "err.log").read_text("utf-8") == ""


def test_log_folder_is_made_one_level_deep_only(capsys, tmp_path):
    flags = ALL_REDUCES.write(tmp_path)
    deep = tmp_path / "a" / "b"

    assert unaware.main([*flags, f"--logging-folder={deep}"]) == 1
    error = f"astra-sim-unaware: error: {deep}: No such file or directory\n"
    assert capsys.readouterr() == ("", error)


def test_log_folder_that_is_a_file_is_refused(capsys, tmp_path):
    (tmp_path / "log").write_text("", "utf-8")

    assert unaware.main(ALL_REDUCES.write(tmp_path)) == 1
    assert capsys.readouterr().err == (
        f"astra-sim-unaware: error: {tmp_path / 'log'}: File exists\n"
    )


@pytest.mark.parametrize(
    ("case", "code", "named"),
    [
        (ALL_REDUCES.changed(ranks=ALL_REDUCES.ranks[:3]), 1, "trace.3.et"),
        (ALL_REDUCES.changed(network=network_file(bandwidth=0.0)), 255, "bandwidth"),
        (ALL_REDUCES.changed(network=network_file("ring")), 255, "topology"),
        (ALL_REDUCES.changed(system=system_file("fast")), 1, "all-reduce-implementation"),
        (
            ALL_REDUCES.changed(system=system_file(preferred_dataset_splits=0)),
            136,
            "preferred-dataset-splits",
        ),
        (ZERO_BYTES_AT_LAST, 134, "message 0->1: size must be positive"),
    ],
)
def test_bad_input_is_one_line_and_an_exit_code(case, code, named, capsys, tmp_path):
    assert unaware.main(case.write(tmp_path)) == code

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("astra-sim-unaware: error: ")
    assert named in line
    assert (tmp_path / "log" / "err.log").read_text("utf-8") == line + "\n"


def test_lines_before_an_abort_stay(capsys, tmp_path):
    """Rank 1 is through after 3 us; rank 0 then sends nothing, which is refused."""
    assert unaware.main(ZERO_BYTES_AT_LAST.write(tmp_path)) == 134

    output = capsys.readouterr()
    assert finished(output.out) == {1: 3000}
    assert (tmp_path / "log" / "log.log").read_text("utf-8") == output.out


def test_unknown_key_is_a_warning_on_stderr(capsys, tmp_path):
    case = ALL_REDUCES.changed(system=system_file(colour="red"))

    assert unaware.main(case.write(tmp_path)) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("astra-sim-unaware: warning: ")
    assert "colour" in line


@pytest.mark.parametrize(("flags", "code"), [([], 0), (["--strict"], 1), (["--strict=false"], 0)])
def test_incomplete_run_says_who_waits(flags, code, capsys, tmp_path):
    assert unaware.main(LONELY_RECEIVE.write(tmp_path) + flags) == code

    output = capsys.readouterr()
    assert finished(output.out) == {0: 3000}
    assert output.err.splitlines() == [
        "astra-sim-unaware: 1 of 2 ranks did not finish, 2 nodes did not complete",
        "astra-sim-unaware: rank 1: node 1 COMM_RECV 'node 1' waits for 64 bytes with tag 5 from "
        "rank 0: rank 0 sends it nothing more",
        "astra-sim-unaware: rank 1: node 2 never ran, waiting for nodes above",
    ]
    assert (tmp_path / "log" / "err.log").read_text("utf-8") == output.err


def test_strict_does_not_mind_a_complete_run(tmp_path):
    assert unaware.main([*PAIR.write(tmp_path), "--strict"]) == 0


def test_strict_minds_a_message_that_is_not_received(capsys, tmp_path):
    case = PAIR.changed(ranks=[[send(0, 1, 64, 5)], [compute(0, 1)]])

    assert unaware.main([*case.write(tmp_path), "--strict"]) == 1
    assert "1 messages of 64 bytes with tag 5 to rank 1 were never" in capsys.readouterr().err


def test_slots_that_were_never_released_are_reported(capsys, tmp_path):
    """Rank 1 never joins, so that the others keep their communication slots; waiting does not."""
    part = [collective(7, ALL_REDUCE, 2**20)]
    case = Case(ranks=[part, [receive(0, 0, 64, 5)], part, part])

    assert unaware.main(case.write(tmp_path)) == 0
    lines = printed(capsys.readouterr().out)
    assert [line for line in lines if "critical" in line][:2] == [
        "[workload] [critical] !!!Hardware Resource sys.id=0 has unreleased nodes!!!",
        "[workload] [critical] communication slot: 7",
    ]
    assert not any("sys.id=1 " in line for line in lines)


def test_trace_file_is_written_whole(capsys, tmp_path):
    path = tmp_path / "timeline.json"

    assert unaware.main([*PAIR.write(tmp_path), "--trace", str(path)]) == 0
    events = json.loads(path.read_text("utf-8"))["traceEvents"]
    assert {event["args"]["id"] for event in events if event["ph"] == "X"} == {0}
    assert [path.name for path in tmp_path.glob("*tmp*")] == []


def test_trace_file_in_no_folder_is_one_line(capsys, tmp_path):
    path = tmp_path / "nowhere" / "timeline.json"

    assert unaware.main([*PAIR.write(tmp_path), f"--trace={path}"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("No such file or directory")


def test_unreleased_slots_by_kind():
    """A receive holds nothing; the CPU's, the computation's and a collective's slots are named."""
    kinds = [
        (1, NodeType.COMM_RECV, False),
        (4, NodeType.COMP, False),
        (5, NodeType.COMP, True),
        (9, NodeType.COMM_COLL, False),
    ]
    nodes = tuple(
        TraceNode(
            id=number,
            name="",
            type=kind,
            dependencies=(),
            duration_ns=0,
            is_cpu=is_cpu,
            attributes={},
        )
        for number, kind, is_cpu in kinds
    )
    lines = []

    report_end([(2, nodes)], lambda *line: lines.append(line))

    assert lines == [
        ("workload", "critical", "!!!Hardware Resource sys.id=2 has unreleased nodes!!!"),
        ("workload", "critical", "cpu slot: 5"),
        ("workload", "critical", "compute slot: 4"),
        ("workload", "critical", "communication slot: 9"),
        ("system", "warning", "Exiting"),
    ]


def test_rings_of_npu_0_and_of_small_groups_are_announced():
    pattern = Dimension(topology="Ring", num_npus=3, bandwidth_gb_per_s=1.0, latency_ns=1.0)
    network = NetworkConfig(dimensions=(pattern, pattern))
    ring, whole = Algorithm(name="ring"), Algorithm(name="ring", whole_system=True)
    tree = Algorithm(name="doubleBinaryTree")
    system = SystemConfig(all_reduce=(ring, ring), all_gather=(tree, whole))
    lines = []

    announce_rings(
        system, network, {2: (5, 1), 1: tuple(range(9))}, lambda *line: lines.append(line[2])
    )

    assert lines == [
        "all-reduce ring of sys[0], dimension 0: 0, 1, 2",
        "all-reduce ring of sys[0], dimension 1: 0, 3, 6",
        "all-gather ring of sys[0], dimension 1: all 9 NPUs",
        "ring of group 2: 5, 1",
    ]
