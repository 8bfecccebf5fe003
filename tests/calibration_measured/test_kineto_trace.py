"""Traces of PyTorch's profiler: layers by hand, and kernels that belong to none are named."""

import gzip
import json

import pytest

from calibration.__main__ import main
from calibration.measured.kineto_trace import read_kineto
from des.world.files.profile_files import read_layer_profile

BACKWARD = "autograd::engine::evaluate_function: MmBackward0"


def event(cat, name, ts, dur, *, tid=1, **args):
    """A complete event; times in microseconds."""
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur,
            "args": args}  # fmt: skip


class Trace:
    """A trace that grows launch by launch, each with its kernel 1 ms later."""

    def __init__(self):
        self.events = []
        self.correlation = 0

    def launch(self, ts, dur, name="gemm", tid=1, at=None):
        """A call at a time, and its kernel of some microseconds."""
        self.correlation += 1
        self.events += [
            event("cuda_runtime", "cudaLaunchKernel", ts, 1, tid=tid, correlation=self.correlation),
            event("kernel", name, 1000 + ts if at is None else at, dur, tid=7,
                  correlation=self.correlation),
        ]  # fmt: skip

    def write(self, path):
        """Write the file."""
        content = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
            "traceEvents": self.events,
        }
        data = json.dumps(content).encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path


def two_layers():
    """Two layers and microbatches: forward 30 and 50 us each, backward 60 and 100 us."""
    trace = Trace()
    for batch in (0, 1):
        start, number = 1000 * batch, 10 * batch
        for layer, dur in ((0, 30), (1, 50)):
            ts, seq = start + 100 * layer, number + layer
            trace.events.append(event("user_annotation", f"layers.{layer}", ts, 90))
            trace.events.append(
                event("cpu_op", "aten::mm", ts + 10, 30, **{"Sequence number": seq})
            )
            trace.launch(ts + 20, dur)
            back = start + 500 + 100 * (1 - layer)
            trace.events.append(
                event("cpu_op", BACKWARD, back, 50, tid=2, **{"Sequence number": seq})
            )
            trace.launch(back + 10, dur, "dgrad", tid=2)
            trace.launch(back + 20, dur, "wgrad", tid=2)
    return trace


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_layers_by_hand(tmp_path, name):
    times = read_kineto(two_layers().write(tmp_path / name))

    assert times.num_layers == 2
    assert times.forward_s == pytest.approx((30e-6 + 50e-6) / 2)
    assert times.backward_s == pytest.approx((60e-6 + 100e-6) / 2)
    assert (times.others_s, times.unlinked) == ((), ())


def test_what_is_in_no_layer_is_named(tmp_path):
    trace = two_layers()
    trace.events.append(event("user_annotation", "Optimizer.step#AdamW.step", 2000, 100))
    trace.launch(2010, 7, "adam")
    trace.events.append(event("cpu_op", "aten::embedding", 2200, 20))
    trace.launch(2205, 3, "gather")
    trace.events.append(event("kernel", "orphan memset", 9000, 2, tid=7, correlation=10**6))
    times = read_kineto(trace.write(tmp_path / "trace.json"))

    assert times.optimiser_s == pytest.approx(7e-6)
    assert times.others_s == (("aten::embedding", pytest.approx(3e-6)),)
    assert times.unlinked == (("orphan memset", pytest.approx(2e-6)),)
    assert "without a launch: 0.002 ms of orphan memset" in times.lines()


def test_communication_is_exposed_where_no_other_kernel_runs(tmp_path):
    """A sum of 100 us, of which the last 60 lie beside a kernel of 200 us."""
    trace = two_layers()
    trace.launch(3000, 100, "ncclDevKernel_AllReduce", at=10_000)
    trace.launch(3100, 200, "gemm", at=10_040)
    times = read_kineto(trace.write(tmp_path / "trace.json"))

    assert times.exposed_s == pytest.approx(40e-6)


def test_layers_made_again_in_the_pass_backward_are_of_it(tmp_path):
    """Recomputation: a layer's span inside a pass backward is no further microbatch."""
    trace = Trace()
    trace.events.append(event("user_annotation", "layers.0", 0, 50, **{"Sequence number": 5}))
    trace.launch(10, 30)
    trace.events.append(event("cpu_op", BACKWARD, 100, 100, tid=2, **{"Sequence number": 5}))
    trace.events.append(event("user_annotation", "layers.0", 110, 40, tid=2))
    trace.launch(120, 30, tid=2)
    trace.launch(160, 60, tid=2)
    times = read_kineto(trace.write(tmp_path / "trace.json"))

    assert times.forward_s == pytest.approx(30e-6)
    assert times.backward_s == pytest.approx(90e-6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"traceEvents": [{"ph"', "not readable as JSON, is it cut off"),
        (
            gzip.compress(b'{"traceEvents": []}', mtime=0)[:-6],
            "not readable as JSON, is it cut off",
        ),
        (b'{"traceEvents": 3}', "traceEvents must be a list"),
        (b'{"traceEvents": []}', "traceEvents must hold kernels"),
        (
            json.dumps({"traceEvents": [event("kernel", "gemm", 0, -1)]}).encode(),
            "dur of kernel gemm must be positive",
        ),
        (
            json.dumps({"traceEvents": [event("kernel", "gemm", 0, 1)]}).encode(),
            "traceEvents must hold spans of layers",
        ),
    ],
)
def test_a_damaged_trace_is_named(tmp_path, content, message):
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_kineto(path)


def test_the_command_makes_a_profile_that_is_read(tmp_path, capsys):
    """The halves of the pass backward are as their FLOPs; together they are what was measured."""
    path = two_layers().write(tmp_path / "trace.json")
    out = tmp_path / "profile.csv"
    flags = ["--model", "llama2_7b", "--sequence", "4096", "--out", str(out)]
    assert main(["profile", "--runs", str(path), *flags]) == 0

    assert "2 layers, forward 0.04 ms" in capsys.readouterr().out
    (point,) = read_layer_profile(out).points
    assert point.forward_s == pytest.approx(40e-6)
    assert point.input_gradient_s + point.weight_gradient_s == pytest.approx(80e-6)
    assert point.input_gradient_s > point.weight_gradient_s
    assert point.layer.ffn_matrices == 3
