"""Layer times in a trace of PyTorch's profiler: kernels by the layer that launched them.

Kineto's chrome trace (pytorch/kineto, ``libkineto/src/output_json.cpp``): a kernel has the
``correlation`` of the call that launched it; a pass backward has the ``Sequence number`` of the
forward one. Layers are spans whose names have their index: ``record_function("layers.3")``, or
modules with ``with_stack=True, with_modules=True``.
"""

import gzip
import re
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import Any

from calibration.measurements.source_text import quartile_distance
from des.base.bounded_files import read_at_most
from des.base.strict_json import parse_json

LAYER_NAME = r"(?i)(?:\blayers?|blocks?|\bh|TransformerLayer|DecoderLayer)[._](\d+)$"
"""Pattern of the names of layers' spans; the group is the index."""

_BACKWARD = "autograd::engine::evaluate_function"
_MOST_BYTES = 2**30
_TIMES_LARGER = 64
_Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class KinetoTimes:
    """Times of one GPU in a trace. [s]

    ``forward_s`` and ``backward_s`` are those of a layer and microbatch, medians over layers, each
    with the distance of its quartiles. Of a step, or all that the trace holds: ``optimiser_s``,
    kernels of communication that no other hides, and other kernels by what launched them;
    ``unlinked`` are kernels without a call that launched them.
    """

    device: str
    num_layers: int
    forward_s: float
    backward_s: float
    spreads_s: tuple[float | None, float | None]
    optimiser_s: float
    exposed_s: float
    others_s: tuple[tuple[str, float], ...]
    unlinked: tuple[tuple[str, float], ...]

    def lines(self) -> list[str]:
        """Figures in words; kernels that belong to no layer are named."""
        forward, backward = (
            "" if one is None else f" (quartiles {1e3 * one:.3g} ms apart)"
            for one in self.spreads_s
        )
        return [
            f"{self.device}: {self.num_layers} layers, forward {1e3 * self.forward_s:.4g} ms"
            f"{forward}, backward {1e3 * self.backward_s:.4g} ms{backward}",
            f"optimiser {1e3 * self.optimiser_s:.4g} ms, exposed communication "
            f"{1e3 * self.exposed_s:.4g} ms",
            *(f"in no layer: {1e3 * one:.4g} ms of {name}" for name, one in self.others_s),
            *(f"without a launch: {1e3 * one:.4g} ms of {name}" for name, one in self.unlinked),
        ]


def is_kineto(path: Path) -> bool:
    """Whether the name or the first bytes of a file are those of such a trace."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(4096)
    return head[:2] == b"\x1f\x8b" or b'"traceEvents"' in head or b'"deviceProperties"' in head


def read_kineto(path: Path, layer_name: str = LAYER_NAME) -> KinetoTimes:
    """Read a trace, compressed by gzip or not.

    Raises
    ------
    ValueError
        If it is no trace, or has no kernels or layers; naming file and field.
    """
    content = _content(path)
    events = [one for one in content["traceEvents"] if one.get("ph") == "X" and "dur" in one]
    kernels = [one for one in events if one.get("cat") == "kernel"]
    if not kernels:
        raise ValueError(f"{path}: traceEvents must hold kernels (cat kernel), got none")
    for one in kernels:
        if not float(one.get("dur", 0)) > 0:
            raise ValueError(f"{path}: dur of kernel {one.get('name')} must be positive")
    owners = _Owners(events, re.compile(layer_name))
    if not owners.counts:
        raise ValueError(f"{path}: traceEvents must hold spans of layers, {layer_name}; got none")
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    for one in kernels:
        seconds[owners.of(one)] += float(one["dur"]) / 1e6
    forward, backward = (
        [one / owners.counts[key[1]] for key, one in seconds.items() if key[0] == kind]
        for kind in ("forward", "backward")
    )
    if not forward or not backward:
        raise ValueError(
            f"{path}: layers must have kernels forward and backward, got one way alone"
        )
    devices = content.get("deviceProperties") or [{}]
    named = {
        kind: tuple(sorted((name, one) for (of, name), one in seconds.items() if of == kind))
        for kind in ("other", "unlinked")
    }
    return KinetoTimes(
        device=str(devices[0].get("name", "")),
        num_layers=len(owners.counts),
        forward_s=median(forward),
        backward_s=median(backward),
        spreads_s=(quartile_distance(forward), quartile_distance(backward)),
        optimiser_s=seconds.get(("optimiser", ""), 0.0),
        exposed_s=_exposed_s(kernels),
        others_s=named["other"],
        unlinked=named["unlinked"],
    )


def _content(path: Path) -> dict[str, Any]:
    raw = read_at_most(path, _MOST_BYTES)
    try:
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.GzipFile(fileobj=BytesIO(raw)).read(_MOST_BYTES)
        content = parse_json(raw.decode(), may_repeat=True, times_larger=_TIMES_LARGER)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise ValueError(f"{path}: not readable as JSON, is it cut off? {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("traceEvents"), list):
        raise ValueError(f"{path}: traceEvents must be a list, got none")
    return content


class _Owners:
    """Owners of kernels: the layers and steps that launched them."""

    def __init__(self, events: Sequence[_Event], layer_name: re.Pattern[str]) -> None:
        self._launches = {
            one["args"]["correlation"]: one
            for one in events
            if one.get("cat") in ("cuda_runtime", "cuda_driver")
            and "correlation" in one.get("args", {})
        }
        self._spans: dict[object, list[_Event]] = defaultdict(list)
        for one in sorted(events, key=lambda each: (each["ts"], -each["dur"])):
            if one.get("cat") in ("cpu_op", "user_annotation", "python_function"):
                self._spans[one["tid"]].append(one)
        self._starts = {tid: [one["ts"] for one in mine] for tid, mine in self._spans.items()}
        self._outer = {tid: _outer(mine) for tid, mine in self._spans.items()}
        self._layer_name = layer_name
        self.counts: dict[str, int] = defaultdict(int)
        self._layer_of: dict[object, str] = {}
        for mine in self._spans.values():
            self._read_layers(mine)

    def _read_layers(self, spans: Iterable[_Event]) -> None:
        """Count the spans of each layer, and note which layer each forward operation is of."""
        layer, end = "", float("-inf")
        backward_end = float("-inf")
        for one in spans:
            if one["name"].startswith(_BACKWARD):
                backward_end = one["ts"] + one["dur"]
            found = self._layer_name.search(one["name"])
            if found and one["ts"] >= end and one["ts"] >= backward_end:
                layer, end = found[1], one["ts"] + one["dur"]
                self.counts[layer] += 1
            number = one.get("args", {}).get("Sequence number")
            if number is not None and one["ts"] < end:
                self._layer_of.setdefault(number, layer)

    def of(self, kernel: _Event) -> tuple[str, str]:
        """Kind of the owner, and its layer or name."""
        name = str(kernel["name"])
        if _is_communication(kernel):
            return "communication", ""
        launch = self._launches.get(kernel.get("args", {}).get("correlation"))
        if launch is None:
            return "unlinked", name[:60]
        around = self._around(launch)
        backward = next((one for one in around if one["name"].startswith(_BACKWARD)), None)
        if backward is not None:
            layer = self._layer_of.get(backward.get("args", {}).get("Sequence number"))
            return (
                ("backward", layer) if layer else ("other", backward["name"][len(_BACKWARD) + 2 :])
            )
        if any(one["name"].startswith("Optimizer.") for one in around):
            return "optimiser", ""
        layers = (self._layer_name.search(one["name"]) for one in around)
        layer = next((one[1] for one in layers if one), None)
        if layer is not None:
            return "forward", layer
        return "other", str(around[-1]["name"]) if around else "no operation"

    def _around(self, launch: _Event) -> list[_Event]:
        """Spans of the thread that hold a launch, the innermost first."""
        tid, found = launch["tid"], []
        place = bisect_right(self._starts.get(tid, []), launch["ts"]) - 1
        while place >= 0:
            span = self._spans[tid][place]
            if span["ts"] + span["dur"] >= launch["ts"]:
                found.append(span)
            place = self._outer[tid][place]
        return found


def _outer(spans: Sequence[_Event]) -> list[int]:
    """Position of the span around each of a thread's spans, which are nested; -1: none."""
    places: list[int] = []
    around: list[int] = []
    for place, one in enumerate(spans):
        while around and spans[around[-1]]["ts"] + spans[around[-1]]["dur"] <= one["ts"]:
            around.pop()
        places.append(around[-1] if around else -1)
        around.append(place)
    return places


def _is_communication(kernel: _Event) -> bool:
    return re.search(r"nccl|rccl", kernel["name"], re.IGNORECASE) is not None


def _exposed_s(kernels: Sequence[_Event]) -> float:
    """Time in which communication runs and nothing else does. [s]"""
    everything = _covered_us(kernels)
    return (everything - _covered_us([one for one in kernels if not _is_communication(one)])) / 1e6


def _covered_us(kernels: Sequence[_Event]) -> float:
    """Time in which some kernel runs. [us]"""
    total, end = 0.0, float("-inf")
    for one in sorted(kernels, key=lambda each: float(each["ts"])):
        start, stop = float(one["ts"]), float(one["ts"]) + float(one["dur"])
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total
