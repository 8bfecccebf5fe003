"""Check of the calls that reach the explorer, before Dash looks their parts up."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

import flask
from dash import Dash

from des.base.strict_json import parse_json

ResultT = TypeVar("ResultT")
_AT_ONCE = 2
"""Works that run at once; they compute, so more would only take longer."""


class TimeLimit:
    """Most time for an answer, that of its turn included; what took longer runs to its end alone.

    Attributes
    ----------
    limit_s
        Time after which an answer is given up. [s]
    """

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self._turns = threading.Semaphore(_AT_ONCE)

    def result(self, work: Callable[[], ResultT]) -> ResultT:
        """Return what work gives, or raise what it raises.

        Raises
        ------
        ValueError
            If that takes too long.
        """
        begun_s = time.monotonic()
        found: Future[ResultT] = Future()
        if self._turns.acquire(timeout=self.limit_s):
            threading.Thread(target=self._run, args=(work, found), daemon=True).start()
            try:
                return found.result(max(0.0, self.limit_s - (time.monotonic() - begun_s)))
            except TimeoutError:
                pass  # said below
        raise ValueError(f"explorer: an answer must take at most {self.limit_s:g} s, got none yet")

    def _run(self, work: Callable[[], ResultT], found: "Future[ResultT]") -> None:
        try:
            found.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised by `result`
            found.set_exception(error)
        finally:
            self._turns.release()


def refuse_odd_calls(app: Dash) -> None:
    """Refuse calls that the page does not make; Dash would answer them with a traceback."""

    server: flask.Flask = app.server

    @server.before_request
    def refuse() -> flask.Response | None:
        if flask.request.path != "/_dash-update-component" or flask.request.method != "POST":
            return None
        try:
            call = parse_json(flask.request.get_data().decode())
        except ValueError:
            call = None
        if isinstance(call, dict) and is_call(app.callback_map, call):
            return None
        return flask.Response("the call must be one of the page's\n", 400)


def is_call(known: Mapping[str, Mapping[str, Any]], call: Mapping[str, Any]) -> bool:
    """Whether a call has the parts of one of the known callbacks, and values of them."""
    output, changed = call.get("output"), call.get("changedPropIds", [])
    if not isinstance(output, str) or output not in known:
        return False
    outputs = outputs_of(output)
    return (
        call.get("outputs") == (outputs if output.startswith("..") else outputs[0])
        and isinstance(changed, list)
        and all(isinstance(one, str) for one in changed)
        and all(_has_parts(call.get(part, []), known[output][part]) for part in ("inputs", "state"))
    )


def outputs_of(output: str) -> list[dict[str, str]]:
    """Return the outputs that the name of a callback stands for."""
    parts = (one.rsplit(".", 1) for one in output.strip(".").split("..."))
    return [{"id": name, "property": value} for name, value in parts]


def _has_parts(given: object, wanted: list[dict[str, str]]) -> bool:
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        return False
    names = [(one.get("id"), one.get("property")) for one in given]
    return names == [(one["id"], one["property"]) for one in wanted]
