"""The extender as a service: verbs behind paths, with health, metrics and the age of its state."""

import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from agents.devices.k8s.decider import Decider
from agents.devices.k8s.verbs import (
    Binding,
    begin_binding,
    end_binding,
    filter_answer,
    preempt_answer,
    prioritize_answer,
)
from des.devices.k8s.wire import parse_wire
from scenarios.k8s.http_parsing import HttpRequest
from scenarios.k8s.http_server import HttpResponse
from scenarios.k8s.metrics import ServiceMetrics

LOG = logging.getLogger("scenarios.k8s")
PREFIX = "/scheduler"
_MOST_TEXTS = 256

Verb = Callable[[Decider, Mapping[str, Any], float], Any]

VERBS: Mapping[str, Verb] = MappingProxyType(
    {
        f"{PREFIX}/filter": filter_answer,
        f"{PREFIX}/prioritize": prioritize_answer,
        f"{PREFIX}/preempt": preempt_answer,
    }
)
"""Answers at once, by path; bind waits for the API server."""

BIND = f"{PREFIX}/bind"

Poster = Callable[[str, Mapping[str, Any]], Awaitable[str]]
"""Posts an object to a path of the API server; returns the error, empty if there was none."""


@dataclass(slots=True, kw_only=True)
class ExtenderService:
    """Answers of an extender.

    Attributes
    ----------
    poster
        Way to the API server; None without one, where bind refuses.
    clock
        Time for promises and grants. [s]
    known_at_s
        Time when the state was last known to be right; None before the first one. [s]
    stale_s
        Age of the state from which reasons say it. [s]
    annotates_gpus
        Whether bindings carry the numbers of the GPUs, and their NUMA nodes.
    """

    decider: Decider
    poster: Poster | None = None
    clock: Callable[[], float] = time.time
    known_at_s: float | None = None
    stale_s: float = 120.0
    annotates_gpus: bool = False
    metrics: ServiceMetrics = field(default_factory=ServiceMetrics)
    _texts: dict[int, tuple[list[Any], bytes]] = field(default_factory=dict)

    @property
    def age_s(self) -> float | None:
        """Age of the state; None before the first one. [s]"""
        return None if self.known_at_s is None else max(0.0, self.clock() - self.known_at_s)

    def answer(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        """Answer a request, at once or, for bind, later."""
        path, method = request.path, request.method
        is_page = path in _PAGES
        if not is_page and path not in VERBS and path != BIND:
            return self._refused(request, 404, f"unknown path {path!r:.100}")
        allowed = "GET" if is_page else "POST"
        if method != allowed and not (is_page and method == "HEAD"):
            reason = f"{path} takes {allowed}, got {method:.20}"
            return self._refused(request, 405, reason, allowed)
        return _PAGES[path](self) if is_page else self._verb_answer(request)

    def _verb_answer(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        begin_s, path = time.perf_counter(), request.path
        if self.known_at_s is None:
            return self._refused(request, 503, "the state of the cluster is not known yet")
        try:
            body = parse_wire(request.body)
            if path == BIND:
                return self._bind(begin_binding(self.decider, body, self.clock()), begin_s)
            content = VERBS[path](self.decider, body, self.clock())
        except ValueError as error:
            return self._refused(request, 400, str(error))
        return self._done(path, self._dated(content), begin_s)

    async def _bind(self, binding: Binding | str, begin_s: float) -> HttpResponse:
        if isinstance(binding, str):
            return self._done(BIND, {"Error": binding}, begin_s)
        if self.poster is None:
            error = "no API server to post the Binding to: give --kubeconfig or --in-cluster"
        else:
            node = self.decider.book.nodes.get(binding.grant.node)
            content = binding.object_to_post(
                self.decider.keys if self.annotates_gpus else None,
                None if node is None else node.server,
            )
            error = await self.poster(binding.path, content)
        if error:
            LOG.warning("bind %s/%s: %s", binding.call.namespace, binding.call.name, error)
        return self._done(BIND, end_binding(self.decider, binding, error, self.clock()), begin_s)

    def _dated(self, content: Any) -> Any:
        """Add the age of an old state to the reasons of a filter result."""
        age_s = self.age_s
        if age_s is not None and age_s >= self.stale_s and isinstance(content, dict):
            for key in ("FailedNodes", "FailedAndUnresolvableNodes"):
                for name, reason in content.get(key, {}).items():
                    content[key][name] = f"{reason} (by a state {age_s:.0f} s old)"
        return content

    def _done(self, path: str, content: Any, begin_s: float) -> HttpResponse:
        verb = path.removeprefix(f"{PREFIX}/")
        body = self._text(content)
        self.metrics.requests.labels(verb, 200).inc()
        if isinstance(content, dict) and content.get("Error"):
            self.metrics.errors.inc()
        self.metrics.times_s.labels(verb).observe(time.perf_counter() - begin_s)
        return HttpResponse(
            status=200, body=body, headers=(("X-State-Age-Seconds", f"{self.age_s or 0.0:.3f}"),)
        )

    def _text(self, content: Any) -> bytes:
        """JSON of a result; lists of scores, which come again as the same object, are kept."""
        kept = self._texts.get(id(content))
        if kept is not None and kept[0] is content:
            return kept[1]
        text = json.dumps(content, separators=(",", ":")).encode()
        if isinstance(content, list):
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            self._texts[id(content)] = content, text
        return text

    def _refused(
        self, request: HttpRequest, status: int, reason: str, allow: str | None = None
    ) -> HttpResponse:
        """Refuse a request: kube-scheduler reads the status alone, so the reason is logged."""
        self.refused(status, reason, request.path)
        return HttpResponse(
            status=status,
            body=f"{reason}\n".encode("utf-8", "replace"),
            content_type="text/plain; charset=utf-8",
            headers=() if allow is None else (("Allow", allow),),
        )

    def refused(self, status: int, reason: str, path: str = "") -> None:
        """Count and log a refusal."""
        is_known = path in VERBS or path == BIND
        verb = path.removeprefix(f"{PREFIX}/") if is_known else "other"
        self.metrics.requests.labels(verb, status).inc()
        shown = ascii(path)[1:-1][:100] or "before the path was known"
        LOG.warning("%d %s: %s", status, shown, ascii(reason)[1:-1])

    def health(self) -> HttpResponse:
        """Tell that the service runs."""
        return HttpResponse(status=200, body=b"ok\n", content_type="text/plain")

    def readiness(self) -> HttpResponse:
        """Tell whether the state of the cluster is known, and its age."""
        age_s = self.age_s
        text = "no state yet\n" if age_s is None else f"ok, state {age_s:.1f} s old\n"
        return HttpResponse(
            status=503 if age_s is None else 200, body=text.encode(), content_type="text/plain"
        )

    def metrics_page(self) -> HttpResponse:
        """Metrics in Prometheus' text format."""
        self.decider.book.expire(self.clock())
        return HttpResponse(
            status=200,
            body=self.metrics.text(self.decider.book, self.age_s),
            content_type="text/plain; version=0.0.4; charset=utf-8",
        )


_PAGES: Mapping[str, Callable[[ExtenderService], HttpResponse]] = MappingProxyType(
    {
        "/healthz": ExtenderService.health,
        "/readyz": ExtenderService.readiness,
        "/metrics": ExtenderService.metrics_page,
    }
)
