"""One round of a watch: read what has arrived, decide, keep the state, launch, run the hook."""

import json
import math
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from agents.decision.plan_document import write_document
from agents.replanning.stay_or_move import short_time
from agents.replanning.watch import WatchVerdict
from des.base.lazy import lazy_imports
from scenarios.k8s.http_parsing import HttpRequest
from scenarios.k8s.http_server import HttpResponse
from scenarios.launch.command import write_launch
from scenarios.watch.folder_source import Arrivals
from scenarios.watch.watch_state import WatchState, write_watch_state

with lazy_imports(__name__):
    from prometheus_client import core, exposition

_OWN = "eastwest_watch"


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

    def collect(self) -> Iterator["core.Metric"]:
        """Yield all metrics."""
        for name, about, label, counts in (
            ("observations", "Observations since the watch began.", "kind", self.observations),
            ("decisions", "Decisions since the watch began.", "action", self.decisions),
        ):
            family = core.CounterMetricFamily(f"{_OWN}_{name}", about, labels=(label,))
            for key, count in counts.items():
                family.add_metric((key,), count)
            yield family
        about = "Lines and files that were wrong."
        yield core.CounterMetricFamily(f"{_OWN}_problems", about, value=self.problems)
        latest = self.latest
        plan = None if latest is None else latest.plan
        seen_s = math.nan if latest is None else round(latest.time_s, 3)
        step_s = math.nan if plan is None else plan.step_s
        for name, about, value in (
            ("stale_links", "Links without new measurements.", self.num_stale),
            ("decision_seconds", "Time of the latest decision.", self.decision_s),
            ("longest_decision_seconds", "Time of the longest one.", self.longest_s),
            ("last_decision_timestamp_seconds", "Latest observation decided on.", seen_s),
            ("step_seconds", "A step of the plan in force, as predicted.", step_s),
        ):
            yield core.GaugeMetricFamily(f"{_OWN}_{name}", about, value=value)

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer ``/metrics`` and ``/healthz``."""
        if request.path == "/metrics" and request.method in ("GET", "HEAD"):
            kind = "text/plain; version=0.0.4; charset=utf-8"
            return HttpResponse(
                status=200, body=exposition.generate_latest(self), content_type=kind
            )
        if request.path == "/healthz":
            return HttpResponse(status=200, body=b"ok\n", content_type="text/plain")
        return HttpResponse(status=404, body=b"/metrics or /healthz\n", content_type="text/plain")


_HOOK_TIMEOUT_S = 300.0
_MOST_AHEAD_S = 120.0
"""Time by which a monitor's clock may be ahead of this one. [s]"""


class Source(Protocol):
    """Brings observations; ``known`` is what it has to remember over restarts."""

    known: dict[str, str | int]

    def arrivals(self) -> Arrivals:
        """Return what is new."""


@dataclass(frozen=True, kw_only=True)
class Outlets:
    """Outlets of decisions besides a line each.

    Attributes
    ----------
    state
        File of the state; None: nothing is kept.
    launch, hosts
        Folder for a launch folder a change, and its hosts.
    hook
        Command that is run after a change, with its document on standard input.
    """

    state: Path | None = None
    launch: Path | None = None
    hosts: Path | None = None
    hook: str | None = None


@dataclass(kw_only=True)
class Watcher:
    """A watch with its source and outlets.

    Attributes
    ----------
    stale_s
        Age of the newest measurement beyond which a link is called stale. [s]
    say, complain
        Take a line about a decision, and one about something that is wrong.
    """

    source: Source
    state: WatchState
    outlets: Outlets
    say: Callable[[str], None]
    complain: Callable[[str], None]
    stale_s: float = 900.0
    clock: Callable[[], float] = time.time
    metrics: WatchMetrics = field(default_factory=WatchMetrics)
    _stale: tuple[str, ...] = ()

    def resume(self) -> None:
        """Finish the latest change, if the process ended while it was under way."""
        if self.state.pending is not None:
            self._carry_out(self.state.pending)

    def round(self) -> None:
        """Read, decide and carry out; an error is one line, and the watch continues.

        Raises
        ------
        ValueError
            If the state cannot be written.
        """
        now_s = self.clock()
        arrivals = self.source.arrivals()
        for problem in (*arrivals.problems, *self._taken(arrivals, now_s), *self._say(now_s)):
            self.metrics.problems += 1
            self.complain(problem)
        began_s = time.perf_counter()
        verdict = self.state.watch.decide(now_s)
        self.metrics.decided(verdict, time.perf_counter() - began_s)
        self.say(line_of(verdict))
        is_change = verdict.action not in ("stay", "wait")
        pending = {"action": verdict.action, "why": verdict.why} if is_change else None
        self._keep(pending, self.state.num_changes + is_change)
        if pending is not None:
            self._carry_out(pending)

    def _taken(self, arrivals: Arrivals, now_s: float) -> Iterator[str]:
        """Take observations; say which are of no use."""
        counts = self.metrics.observations
        late: dict[str, int] = {}
        for seen in arrivals.observations:
            about = seen.about or "restart"
            if seen.time_s > now_s + _MOST_AHEAD_S:
                counts["ahead"] += 1
                yield (
                    f"{about}: left out, it is {short_time(seen.time_s - now_s)} ahead of this "
                    "clock"
                )
                continue
            try:
                taken = self.state.watch.take(seen)
            except ValueError as error:
                counts["unknown"] += 1
                yield str(error)
                continue
            counts[taken] += 1
            if taken != "taken":
                late[about] = late.get(about, 0) + 1
        for about, count in late.items():
            yield f"{about}: {count} observations left out, newer ones are known"

    def _say(self, now_s: float) -> Iterator[str]:
        """Say a clock that went back, and links that have become stale or are measured again."""
        latest_s = self.state.watch.time_s
        if now_s < latest_s:
            yield f"the clock went back by {short_time(latest_s - now_s)}; time stands still"
        stale = self.state.watch.world.stale(now_s - self.stale_s)
        for name in stale:
            if name not in self._stale:
                yield f"{name}: stale, no measurement for {short_time(self.stale_s)}"
        self._stale, self.metrics.num_stale = stale, len(stale)

    def _keep(self, pending: dict[str, str] | None, num_changes: int) -> None:
        self.state = replace(
            self.state, pending=pending, num_changes=num_changes, files=dict(self.source.known)
        )
        if self.outlets.state is not None:
            write_watch_state(self.outlets.state, self.state)

    def _carry_out(self, pending: dict[str, str]) -> None:
        """Write launch files, run the hook, and note that it is done."""
        bound, launch = self.state.watch.in_force, None
        assert bound is not None
        if self.outlets.launch is not None:
            launch = self.outlets.launch / f"plan-{self.state.num_changes:04d}"
            try:
                if not launch.exists():
                    self.say(write_launch(bound, self.outlets.hosts, launch))
            except ValueError as error:
                self.complain(f"--launch: {error}")
        if self.outlets.hook is not None:
            document: dict[str, object] = {**pending, "plan": write_document(bound)}
            self._run_hook(self.outlets.hook, pending, document, launch)
        self._keep(None, self.state.num_changes)

    def _run_hook(
        self, hook: str, pending: dict[str, str], document: dict[str, object], launch: Path | None
    ) -> None:
        names = {
            "EASTWEST_ACTION": pending["action"],
            "EASTWEST_WHY": pending["why"],
            "EASTWEST_LAUNCH": "" if launch is None else str(launch),
        }
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", hook],
                input=json.dumps(document).encode(),
                env=os.environ | names,
                timeout=_HOOK_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self.complain(f"--on-decision: {error}")
            return
        if done.returncode:
            self.complain(f"--on-decision: must end with code 0, got {done.returncode}")


def line_of(verdict: WatchVerdict) -> str:
    """Say a decision in one line: when, what, the step of the plan in force, and why."""
    when = datetime.fromtimestamp(verdict.time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    step = "-" if verdict.plan is None else f"{verdict.plan.step_s:.4g} s a step"
    searched = f" (searched: {verdict.searched})" if verdict.searched else ""
    return f"{when} {verdict.action}, {step}: {verdict.why}{searched}"
