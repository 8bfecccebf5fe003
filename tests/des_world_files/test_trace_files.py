"""Execution traces as files, which others read."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from shutil import which

import pytest
from hand_traces import on_gpus
from processes import FAILSAFE_S

from astra_sim.files.execution_trace import CollectiveType, read_traces
from calibration.reference.chakra_trace import TraceSet, build_traces, write_traces
from des import Parallelism


def chakra(module: str, *arguments: str) -> None:
    """Run a command of the Chakra package."""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-m", f"chakra.src.{module}.{module}", *arguments],
        check=True,
        timeout=FAILSAFE_S,
    )


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, TraceSet]:
    """Traces with every kind of node, on disk."""
    made = on_gpus(0, 0, 1, 1, parallelism=Parallelism(tensor=2, data=2))
    traces = build_traces(made)
    write_traces(traces, tmp_path)
    return tmp_path, traces


def test_files_give_back_the_traces(written: tuple[Path, TraceSet]):
    folder, traces = written

    found = read_traces(folder / "trace", len(traces.traces))

    assert [trace.nodes for trace in found] == [trace.nodes for trace in traces.traces]
    assert len(list(folder.iterdir())) == len(traces.traces) == 12


def test_pauses_keep_their_microseconds_in_files(tmp_path: Path):
    """At granularity ``domain`` sums inside a domain are broadcasts of known length."""
    made = replace(on_gpus(0, 0, 1, 1, parallelism=Parallelism(data=4)), granularity="domain")
    layers = tuple(replace(layer, num_parameters=1e9) for layer in made.workload.layers)
    made = replace(made, workload=replace(made.workload, layers=layers))
    write_traces(build_traces(made), tmp_path, prefix="other")

    (pause,) = (
        node for node in read_traces(tmp_path / "other", 3)[0].nodes if "gradient" in node.name
    )
    # 4e9 bytes in 6 steps of a quarter at 1e9 B/s, and 6 latencies of 1 us
    assert pause.duration_ns == 6_000_006_000
    assert pause.unsigned64("comm_type") == CollectiveType.BROADCAST


def test_writing_into_no_folder_leaves_nothing(written: tuple[Path, TraceSet]):
    folder, traces = written
    with pytest.raises(OSError, match="No such file"):
        write_traces(traces, folder / "missing")


def test_chakra_jsonizer_reads_the_files(written: tuple[Path, TraceSet]):
    folder, traces = written
    target = folder / "trace.json"

    chakra("jsonizer", f"--input_filename={folder / 'trace.1.et'}", f"--output_filename={target}")

    text = target.read_text("utf-8")
    records = [json.loads(each) for each in re.split(r"(?<=\n\})(?=\{)", text)]
    assert [record["name"] for record in records[1:]] == [
        node.name for node in traces.traces[1].nodes
    ]


@pytest.mark.parametrize(
    "kind",
    [
        "graphml",
        pytest.param(
            "dot",
            marks=pytest.mark.skipif(which("dot") is None, reason="needs Graphviz's dot"),
        ),
    ],
)
def test_chakra_visualizer_reads_the_files(written: tuple[Path, TraceSet], kind: str):
    folder, traces = written
    target = folder / f"trace.{kind}"

    chakra("visualizer", f"--input_filename={folder / 'trace.1.et'}", f"--output_filename={target}")

    text = target.read_text("utf-8")
    assert all(node.name in text for node in traces.traces[1].nodes)
