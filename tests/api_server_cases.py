"""A small API server for tests: lists in pages, watches with bookmarks, Gone, bindings, tokens."""

import json
import ssl
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from scenarios.k8s.api_server import ApiServer, reach

PAGE = 2


class ApiCluster:
    """Objects by path and name, their changes by version, and what was posted and asked."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.objects: dict[str, dict[str, dict]] = {"/api/v1/nodes": {}, "/api/v1/pods": {}}
        self.events: list[tuple[int, str, dict]] = []
        self.version = 100
        self.oldest = 0
        self.is_up = True
        self.posted: list[tuple[str, dict]] = []
        self.patched: list[tuple[str, str, dict]] = []
        self.tokens: set[str] = set()
        self.refusal: tuple[int, dict] | None = None
        self.documents: dict[str, dict] = {}
        self.queries: list[tuple[str, dict[str, str]]] = []
        self.num_closed = 0

    def put(self, path: str, item: dict) -> None:
        """Add an object, or change it."""
        with self.changed:
            name = item["metadata"]["name"]
            kind = "MODIFIED" if name in self.objects[path] else "ADDED"
            self._enter(path, kind, item)
            self.objects[path][name] = self.events[-1][2]["object"]

    def delete(self, path: str, name: str) -> None:
        with self.changed:
            self._enter(path, "DELETED", self.objects[path].pop(name))

    def forget_history(self) -> None:
        """Break off all watches, after which older versions are Gone."""
        with self.changed:
            self.oldest = self.version + 1
            self.version += 1
            self.changed.notify_all()

    def set_up(self, is_up: bool) -> None:
        """Go away, or come back."""
        with self.changed:
            self.is_up = is_up
            self.changed.notify_all()

    def _enter(self, path: str, kind: str, item: dict) -> None:
        self.version += 1
        metadata = {**item["metadata"], "resourceVersion": str(self.version)}
        event = {"type": kind, "object": {**item, "metadata": metadata}}
        self.events.append((self.version, path, event))
        self.changed.notify_all()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster: ApiCluster

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.cluster.queries.append((parts.path, query))
        if not self.cluster.is_up:
            self.close_connection = True
            return
        if parts.path in self.cluster.documents:
            self._send(200, self.cluster.documents[parts.path])
        elif parts.path not in self.cluster.objects:
            self._send(404, {"message": "the server could not find the requested resource"})
        elif self.cluster.tokens and self._token() not in self.cluster.tokens:
            self._send(401, {"message": "Unauthorized"})
        elif query.get("watch"):
            self._watch(parts.path, int(query["resourceVersion"]))
        else:
            self._list(parts.path, query)

    def _token(self) -> str:
        kind, _, token = self.headers.get("Authorization", "").partition(" ")
        return token if kind.lower() == "bearer" else ""

    def do_PATCH(self) -> None:
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind = self.headers["Content-Type"]
        self.cluster.patched.append((self.path, kind, content))
        self._send(*(self.cluster.refusal or (200, {"kind": "Node"})))

    def do_POST(self) -> None:
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.cluster.posted.append((self.path, content))
        self._send(*(self.cluster.refusal or (201, {"kind": "Status", "status": "Success"})))

    def _send(self, status: int, content: dict) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _list(self, path: str, query: dict[str, str]) -> None:
        with self.cluster.changed:
            items = list(self.cluster.objects[path].values())
            version = str(self.cluster.version)
        begin = int(query.get("continue", "0"))
        metadata = {"resourceVersion": version}
        if begin + PAGE < len(items):
            metadata["continue"] = str(begin + PAGE)
        self._send(200, {"metadata": metadata, "items": items[begin : begin + PAGE]})

    def _watch(self, path: str, version: int) -> None:
        cluster = self.cluster
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        place, now = 0, -1
        while True:
            with cluster.changed:  # what changed while events were sent is not waited for
                while cluster.version <= now and cluster.is_up and cluster.changed.wait(60.0):
                    pass
                fresh = [e for v, p, e in cluster.events[place:] if p == path and v > version]
                place, now = len(cluster.events), cluster.version
                is_gone, is_up = version < cluster.oldest, cluster.is_up
            if is_gone or not is_up:
                if is_gone and is_up:
                    gone = {"kind": "Status", "code": 410, "message": "too old resource version"}
                    self._event({"type": "ERROR", "object": gone})
                    self.wfile.write(b"0\r\n\r\n")
                self.close_connection = True
                cluster.num_closed += 1
                return
            for event in fresh:
                self._event(event)
            mark = {"kind": "Node", "metadata": {"resourceVersion": str(now)}}
            self._event({"type": "BOOKMARK", "object": mark})

    def _event(self, event: dict) -> None:
        line = json.dumps(event).encode() + b"\n"
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.flush()


@contextmanager
def api_server(cluster: ApiCluster, tls: ssl.SSLContext | None = None) -> Any:
    """Serve a cluster; gives the address."""
    handler = type("Handler", (_Handler,), {"cluster": cluster})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}"
    finally:
        cluster.set_up(False)
        server.shutdown()
        server.server_close()


def kubeconfig(folder: Path, url: str, **user: object) -> Path:
    """Kubeconfig of a server, with these fields of its user."""
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": user}],
    }
    (folder / "config").write_text(json.dumps(config), "utf-8")
    return folder / "config"


def api_of(folder: Path, url: str, timeout_s: float = 10.0, **user: object) -> ApiServer:
    """Client of a server, by a kubeconfig that is written into a folder."""
    found = reach(kubeconfig(folder, url, **user), in_cluster=False, timeout_s=timeout_s)
    assert found is not None
    return found
