"""Explore a world, a job and a plan in the browser, on this machine alone."""

from __future__ import annotations

import json
import socket
import sys
import threading
import urllib.request
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from agents.decision.families import Family
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command
from des.base.extras import needed_extra, require_extra
from des.base.flags import option
from des.base.lazy import lazy_imports
from des.base.speaking import SPEAKER
from des.base.strict_json import parse_json
from des.worlds.world_flags import LayerFlags, NetworkFlag

with lazy_imports(__name__):
    from wsgiref.types import WSGIApplication

    from werkzeug import serving

    from scenarios.explore import app, calls, scene

PROG = "python -m scenarios.explore"
HOST = "127.0.0.1"
_EPILOG = f"""\
examples:
  {PROG}
      the default world, at http://{HOST}:8050
  {PROG} --network cluster.yaml --model llama2_13b --runs runs
      a world of your own, and the reports of the runs in a folder
  {PROG} --check
      start, draw once and stop, for tests

{needed_extra("explore")}

exit codes: 0 ended; 2 a flag is wrong, the port is in use, or the extra is missing;
  {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(LayerFlags, NetworkFlag):
    """Flags of the explorer."""

    family: Family = option("pipeline", "family of plans to begin with")
    microbatches: int = option(32, "sequences of a step to begin with")
    runs: Path = option(Path("runs"), "folder of run folders whose reports can be opened")
    port: int = option(8050, "port to listen at; 0: any that is free")
    check: bool = option(False, "start, draw once, and stop")

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise UsageError(f"{PROG}: port must be from 0 to 65535, got {self.port}")


@command(Config, PROG, __doc__, _EPILOG)
def main(config: Config) -> None:
    """Run the command on its settings."""
    require_extra(PROG, "dash")
    port = free_port(0 if config.check and config.port == 8050 else config.port)
    settings = scene.Settings(
        **{one.name: getattr(config, one.name) for one in fields(LayerFlags)},
        network=config.network,
        family=config.family,
        num_sequences=config.microbatches,
    )
    found = app.explorer_app(app.Explorer(settings=settings, runs=config.runs))
    with Served(found.server, port) as served:
        if config.check:
            sys.stdout.write(f"drawn: {served.draw_once()}\n")
            return
        sys.stdout.write(f"explorer: {served.url}, Ctrl-C ends it\n")
        sys.stdout.flush()
        with SPEAKER.resting():
            served.wait()


def free_port(port: int) -> int:
    """Return the port, or one that is free for 0.

    Raises
    ------
    UsageError
        If another program listens there.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise UsageError(
                f"{PROG}: port {port} must be free, got: {error.strerror}; choose another --port"
            ) from error
        return int(probe.getsockname()[1])


class Served:
    """An application that is served in a thread for as long as a block lasts."""

    def __init__(self, application: WSGIApplication, port: int) -> None:
        self._server = serving.make_server(
            HOST, port, application, threaded=True, request_handler=_quiet_handler()
        )
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://{HOST}:{port}"

    def __enter__(self) -> Served:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()

    def wait(self) -> None:
        """Wait until the server ends, or Ctrl-C."""
        while self._thread.is_alive():
            self._thread.join(timeout=0.5)

    def draw_once(self) -> str:
        """Ask for the page and for its figures as a browser does; return the answer's sentence.

        Raises
        ------
        ValueError
            If the server has an error.
        """
        self.fetch("/")
        (draw,) = (one for one in self.answer("/_dash-dependencies") if "gantt" in one["output"])
        layout = _components(self.answer("/_dash-layout"))
        inputs = [one | {"value": layout[one["id"]]["value"]} for one in draw["inputs"]]
        outputs = {"output": draw["output"], "outputs": calls.outputs_of(draw["output"])}
        question = {**outputs, "inputs": inputs, "changedPropIds": []}
        answer = self.answer("/_dash-update-component", json.dumps(question).encode())
        return str(answer["response"]["answer"]["children"])

    def answer(self, path: str, body: bytes | None = None) -> Any:
        """Return what the server answers, read as JSON."""
        return parse_json(self.fetch(path, body).decode())

    def fetch(self, path: str, body: bytes | None = None) -> bytes:
        """Return what the server answers."""
        request = urllib.request.Request(
            self.url + path, data=body, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60.0) as answer:
            content: bytes = answer.read()
        return content


def _quiet_handler() -> type[serving.WSGIRequestHandler]:
    """A handler that logs no requests."""

    class Quiet(serving.WSGIRequestHandler):
        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Log nothing."""

    return Quiet


def _components(node: object) -> dict[str, dict[str, object]]:
    """Properties of the components of a layout by their ids."""
    found: dict[str, dict[str, object]] = {}
    if isinstance(node, list):
        for one in node:
            found |= _components(one)
    elif isinstance(node, dict):
        properties = node.get("props", {})
        if "id" in properties:
            found[properties["id"]] = properties
        found |= _components(properties.get("children"))
    return found
