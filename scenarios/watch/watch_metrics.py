"""Metrics of a watch in Prometheus' text format, and the answers to requests for them."""

from collections import Counter
from dataclasses import dataclass, field

from agents.replanning.watch import WatchVerdict
from scenarios.k8s.http_parsing import HttpRequest
from scenarios.k8s.http_server import HttpResponse


@dataclass(kw_only=True)
class WatchMetrics:
    """Counts since the process began, and figures of the latest decision."""

    observations: Counter[str] = field(default_factory=Counter)
    decisions: Counter[str] = field(default_factory=Counter)
    problems: int = 0
    num_stale: int = 0
    latest: WatchVerdict | None = None
    decision_s: float = 0.0
    longest_s: float = 0.0

    def decided(self, verdict: WatchVerdict, time_s: float) -> None:
        """Count a decision and the time that it took."""
        self.decisions[verdict.action] += 1
        self.latest, self.decision_s = verdict, time_s
        self.longest_s = max(self.longest_s, time_s)

    def text(self) -> str:
        """All metrics."""
        lines = []
        for name, about, label, counts in (
            ("observations", "Observations", "kind", self.observations),
            ("decisions", "Decisions", "action", self.decisions),
        ):
            lines += _head(f"{name}_total", "counter", f"{about} since the watch began.")
            lines += [
                f'eastwest_watch_{name}_total{{{label}="{key}"}} {count}'
                for key, count in sorted(counts.items())
            ]
        latest = self.latest
        plan = None if latest is None else latest.plan
        gauges = (
            ("problems_total", "counter", "Lines and files that were wrong.", self.problems),
            ("stale_links", "gauge", "Links without new measurements.", self.num_stale),
            ("decision_seconds", "gauge", "Time of the latest decision.", self.decision_s),
            ("longest_decision_seconds", "gauge", "Time of the longest one.", self.longest_s),
            (
                "last_decision_timestamp_seconds",
                "gauge",
                "Time of the latest observation decided on.",
                "NaN" if latest is None else f"{latest.time_s:.3f}",
            ),
            (
                "step_seconds",
                "gauge",
                "A step of the plan in force, as predicted.",
                "NaN" if plan is None else f"{plan.step_s:.9g}",
            ),
        )
        for name, kind, about, value in gauges:
            lines += [*_head(name, kind, about), f"eastwest_watch_{name} {value}"]
        return "".join(f"{line}\n" for line in lines)

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer ``/metrics`` and ``/healthz``."""
        if request.path == "/metrics" and request.method in ("GET", "HEAD"):
            kind = "text/plain; version=0.0.4; charset=utf-8"
            return HttpResponse(status=200, body=self.text().encode(), content_type=kind)
        if request.path == "/healthz":
            return HttpResponse(status=200, body=b"ok\n", content_type="text/plain")
        return HttpResponse(status=404, body=b"/metrics or /healthz\n", content_type="text/plain")


def _head(name: str, kind: str, about: str) -> list[str]:
    full = f"eastwest_watch_{name}"
    return [f"# HELP {full} {about}", f"# TYPE {full} {kind}"]
