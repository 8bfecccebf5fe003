"""Timeline of a simulated iteration for chrome://tracing and ui.perfetto.dev.

Domains are processes and stages their threads; the process "WAN links" has a thread for each link
direction in use. Arrows follow every message from the pass that made it, over the wires, to the
pass that needs it.

References
----------
.. [1] Trace Event Format, the Chromium project's documentation of the JSON that Catapult and
   Perfetto read: complete ("X"), metadata ("M") and flow ("s", "t", "f") events.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import count, groupby
from pathlib import Path
from typing import Any

from des.base.atomic_write import write_atomically
from des.engine.result import IterationResult, Span, Transfer
from des.schedules import MESSAGE_OF

Event = dict[str, Any]

_CATEGORY = {"F": "forward", "B": "backward", "D": "input gradient", "W": "weight gradient"}
_MESSAGE = {"F": "activation", "B": "gradient", "G": "sum of gradients", "N": "notice"}
_RECEIVER_STEP = {"F": 1, "B": -1}


def chrome_trace(result: IterationResult) -> dict[str, Any]:
    """Return the iteration in the Chrome trace event format, ready for `json.dumps`.

    Times are microseconds since the start of the iteration, rounded to the nanosecond.
    """
    tracks = _Tracks(result)
    events = [*tracks.metadata()]
    events += [_pass_event(result, span, tracks) for span in sorted(result.spans)]
    events += [_wire_event(move, tracks) for move in sorted(result.transfers)]
    events += _flow_events(result, tracks)
    return {
        "displayTimeUnit": "ms",
        "otherData": {
            "makespan_s": result.makespan_s,
            "utilisation": result.utilisation,
            "bubble_fraction": result.bubble_fraction,
        },
        "traceEvents": events,
    }


def chrome_trace_json(result: IterationResult) -> bytes:
    """Return the content of a trace file; equal results give equal bytes."""
    return (json.dumps(chrome_trace(result), allow_nan=False) + "\n").encode()


def write_chrome_trace(result: IterationResult, path: str | Path) -> None:
    """Write a trace file, whole or not at all.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written.
    """
    write_atomically(path, chrome_trace_json(result))


class _Tracks:
    """Process and thread numbers of stages and links; processes count from 1."""

    def __init__(self, result: IterationResult) -> None:
        self._result = result
        domains = [memory.domain for memory in result.memory]
        self._process_of = {name: number for number, name in enumerate(domains, start=1)}
        self._wan = len(domains) + 1

    def of_stage(self, stage: int) -> Event:
        """Track of the passes of a stage."""
        return {"pid": self._process_of[self._result.stages[stage].domain], "tid": stage}

    def of_link(self, link: int) -> Event:
        """Track of the transfers of a link direction."""
        return {"pid": self._wan, "tid": link}

    def metadata(self) -> Iterator[Event]:
        """Names and order of all that is in use."""
        used = {stage.domain for stage in self._result.stages}
        for domain, number in self._process_of.items():
            if domain in used:
                yield from _name("process", {"pid": number, "tid": 0}, domain, number)
        for index, stage in enumerate(self._result.stages):
            last = stage.first_layer + stage.num_layers - 1
            name = f"stage {index}, layers {stage.first_layer}-{last}"
            yield from _name("thread", self.of_stage(index), name, index)
        links = [(index, use) for index, use in enumerate(self._result.links) if use.num_messages]
        if links:
            yield from _name("process", {"pid": self._wan, "tid": 0}, "WAN links", self._wan)
        for index, use in links:
            yield from _name("thread", self.of_link(index), f"{use.source}→{use.target}", index)


def _name(what: str, track: Event, name: str, position: int) -> Iterator[Event]:
    yield {"ph": "M", "name": f"{what}_name", **track, "args": {"name": name}}
    yield {"ph": "M", "name": f"{what}_sort_index", **track, "args": {"sort_index": position}}


def _complete(start_s: float, end_s: float) -> Event:
    """Both ends are rounded, not the duration, so that neighbours touch and never overlap."""
    start_us, end_us = _microseconds(start_s), _microseconds(end_s)
    return {"ph": "X", "ts": start_us, "dur": round(end_us - start_us, 3)}


def _microseconds(time_s: float) -> float:
    return round(time_s * 1e6, 3)


def _pass_event(result: IterationResult, span: Span, tracks: _Tracks) -> Event:
    stage = result.stages[span.stage]
    return {
        **_complete(span.start_s, span.end_s),
        "name": f"{span.kind}{span.microbatch}",
        "cat": _CATEGORY[span.kind],
        **tracks.of_stage(span.stage),
        "args": {
            "stage": span.stage,
            "microbatch": span.microbatch,
            "first_layer": stage.first_layer,
            "num_layers": stage.num_layers,
        },
    }


def _wire_event(move: Transfer, tracks: _Tracks) -> Event:
    message = _MESSAGE[move.kind]
    counted = "bucket" if move.kind == "G" else "microbatch"
    args = {"sender": move.stage, counted: move.microbatch}
    if move.kind in _RECEIVER_STEP:
        args["receiver"] = move.stage + _RECEIVER_STEP[move.kind]
    return {
        **_complete(move.start_s, move.end_s),
        "name": f"{message} {move.microbatch} of stage {move.stage}",
        "cat": message,
        **tracks.of_link(move.link),
        "args": {**args, "arrival_us": _microseconds(move.arrival_s)},
    }


def _flow_events(result: IterationResult, tracks: _Tracks) -> Iterator[Event]:
    """Follow each message; a step binds to the slice around it, so it stands in its middle."""
    passes = {
        (span.stage, MESSAGE_OF[span.kind], span.microbatch): span
        for span in result.spans
        if span.kind in MESSAGE_OF
    }
    followed = (move for move in result.transfers if move.kind in _RECEIVER_STEP)
    hops = sorted(followed, key=lambda move: (_message(move), move.start_s))
    numbers = count()
    for (stage, kind, microbatch), route in groupby(hops, key=_message):
        receiver = stage + _RECEIVER_STEP[kind]
        steps: list[tuple[Event, Span | Transfer]] = [
            (tracks.of_stage(stage), passes[stage, kind, microbatch]),
            *((tracks.of_link(move.link), move) for move in route),
            (tracks.of_stage(receiver), passes[receiver, kind, microbatch]),
        ]
        yield from _flow(next(numbers), _MESSAGE[kind], steps)


def _message(move: Transfer) -> tuple[int, str, int]:
    return move.stage, move.kind, move.microbatch


def _flow(number: int, name: str, steps: Iterable[tuple[Event, Span | Transfer]]) -> list[Event]:
    events: list[Event] = [
        {
            "ph": "t",
            "ts": _microseconds((span.start_s + span.end_s) / 2),
            "id": number,
            "name": name,
            "cat": "message",
            **track,
        }
        for track, span in steps
    ]
    events[0]["ph"] = "s"
    events[-1] |= {"ph": "f", "bp": "e"}  # end in the enclosing slice, not in the next one
    return events
