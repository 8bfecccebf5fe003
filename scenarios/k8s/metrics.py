"""Metrics of the extender in Prometheus' text format."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agents.devices.goodness import places_of
from agents.devices.k8s.book import GpuBook, Grant
from agents.devices.k8s.node_fit import gpus_all_reduce_s
from agents.devices.numa_policies import nodes_needed
from des.devices.server import Server
from scenarios.k8s.metric_names import ALL_REDUCE_METRIC, NUMA_METRIC

BUCKETS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)


@dataclass(slots=True, kw_only=True)
class ServiceMetrics:
    """Counts and times of requests.

    Attributes
    ----------
    errors
        Answers with ``Error``.
    state_failures
        Readings of the state that failed.
    """

    errors: int = 0
    state_failures: int = 0
    _requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    _buckets: dict[str, list[int]] = field(default_factory=dict)
    _sums_s: Counter[str] = field(default_factory=Counter)

    def count(self, verb: str, status: int) -> None:
        """Count a request."""
        self._requests[verb, status] += 1

    def observe(self, verb: str, time_s: float) -> None:
        """Enter the time of an answer."""
        counts = self._buckets.setdefault(verb, [0] * (len(BUCKETS_S) + 1))
        counts[sum(time_s > bound for bound in BUCKETS_S)] += 1
        self._sums_s[verb] += time_s  # type: ignore[assignment]  # a Counter adds floats as well

    def text(self) -> str:
        """Metrics of requests."""
        lines = _head("eastwest_extender_requests_total", "counter", "Requests.")
        lines += [
            f'eastwest_extender_requests_total{{verb="{verb}",code="{code}"}} {count}'
            for (verb, code), count in sorted(self._requests.items())
        ]
        name = "eastwest_extender_request_seconds"
        lines += _head(name, "histogram", "Times of answers.")
        for verb, counts in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*BUCKETS_S, "+Inf"), counts, strict=True):
                total += count
                lines.append(f'{name}_bucket{{verb="{verb}",le="{bound}"}} {total}')
            lines.append(f'{name}_sum{{verb="{verb}"}} {self._sums_s[verb]:.9g}')
            lines.append(f'{name}_count{{verb="{verb}"}} {total}')
        for short, about, value in (
            ("errors_total", "Answers with an Error.", self.errors),
            ("state_failures_total", "Readings of the state that failed.", self.state_failures),
        ):
            lines += _head(f"eastwest_extender_{short}", "counter", about)
            lines.append(f"eastwest_extender_{short} {value}")
        return "".join(f"{line}\n" for line in lines)


def gauges_text(book: GpuBook, age_s: float | None) -> str:
    """Metrics of a cluster's GPUs, of promises to gangs, and of pods with GPUs."""
    slots = [slot for promise in book.promises.values() for slot in promise.slots]
    values = {
        "state_age_seconds": ("Age of the state.", "NaN" if age_s is None else f"{age_s:.3f}"),
        "nodes": ("Nodes known.", str(len(book.nodes))),
        "gpus_free": ("GPUs not held, promised or not.", str(sum(map(len, _not_held(book))))),
        "gang_promises": ("Gangs with promised GPUs.", str(len(book.promises))),
        "gang_promised_gpus": ("Promised GPUs.", str(sum(len(slot.fit.gpus) for slot in slots))),
    }
    lines: list[str] = []
    for name, (about, value) in values.items():
        lines += _head(f"eastwest_extender_{name}", "gauge", about)
        lines.append(f"eastwest_extender_{name} {value}")
    name = "eastwest_extender_gang_promises_expired_total"
    lines += [*_head(name, "counter", "Promises ended in time-out."), f"{name} {book.num_expired}"]
    return "".join(f"{line}\n" for line in [*lines, *_pods_lines(book)])


def _not_held(book: GpuBook) -> Iterable[tuple[int, ...]]:
    return (book.not_held(name) for name in book.nodes)


def _pods_lines(book: GpuBook) -> list[str]:
    numa = _head(NUMA_METRIC, "gauge", "NUMA nodes of a pod's GPUs.")
    times = _head(ALL_REDUCE_METRIC, "gauge", "Predicted all-reduce of 100 MB among them.")
    for grant in book.grants.values():
        node = book.nodes.get(grant.node)
        if node is None or node.server is None or not grant.gpus:
            continue
        labels = _labels(
            {"namespace": grant.namespace, "pod": grant.name or grant.uid, "node": grant.node}
        )
        count, time_s = _figures(node.server, grant)
        if count is not None:
            numa.append(f"{NUMA_METRIC}{labels} {count}")
        if time_s is not None:
            times.append(f"{ALL_REDUCE_METRIC}{labels} {time_s:.9g}")
    return [*numa, *times]


def _figures(server: Server, grant: Grant) -> tuple[int | None, float | None]:
    places = places_of(server, "gpus", grant.gpus)
    return nodes_needed(server, places), gpus_all_reduce_s(server, grant.gpus)


def _head(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def _labels(values: Mapping[str, str]) -> str:
    escaped = {
        key: value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        for key, value in values.items()
    }
    return "{" + ",".join(f'{key}="{value}"' for key, value in escaped.items()) + "}"
