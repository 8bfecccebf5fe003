"""Metrics of the extender in Prometheus' text format."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from agents.devices.goodness import places_of
from agents.devices.gpu_placement import gpus_all_reduce_s
from agents.devices.k8s.book import GpuBook
from agents.devices.numa_policies import nodes_needed
from scenarios.k8s.metric_names import ALL_REDUCE_METRIC, NUMA_METRIC

BUCKETS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)
_OWN = "eastwest_extender"


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

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    requests: Counter = field(init=False)
    times_s: Histogram = field(init=False)
    errors: Counter = field(init=False)
    state_failures: Counter = field(init=False)

    def __post_init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a series more for each
        own = self.registry
        self.requests = Counter(f"{_OWN}_requests", "Requests.", ("verb", "code"), registry=own)
        self.times_s = Histogram(
            f"{_OWN}_request_seconds",
            "Times of answers.",
            ("verb",),
            registry=own,
            buckets=BUCKETS_S,
        )
        self.errors = Counter(f"{_OWN}_errors", "Answers with an Error.", registry=own)
        failures = "Readings of the state that failed."
        self.state_failures = Counter(f"{_OWN}_state_failures", failures, registry=own)

    def text(self, book: GpuBook, age_s: float | None) -> bytes:
        """All metrics, with those of a cluster's GPUs and the age of its state."""
        return generate_latest(self.registry) + generate_latest(_BookMetrics(book, age_s))


@dataclass(frozen=True, slots=True)
class _BookMetrics:
    """Metrics of a cluster's GPUs, of promises to gangs, and of pods with GPUs."""

    book: GpuBook
    age_s: float | None

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        book, promises = self.book, self.book.promises.values()
        free = sum(len(book.not_held(name)) for name in book.nodes)
        promised = sum(len(slot.fit.gpus) for promise in promises for slot in promise.slots)
        for name, about, value in (
            ("state_age_seconds", "Age of the state.", self.age_s),
            ("nodes", "Nodes known.", len(book.nodes)),
            ("gpus_free", "GPUs not held, promised or not.", free),
            ("gang_promises", "Gangs with promised GPUs.", len(promises)),
            ("gang_promised_gpus", "Promised GPUs.", promised),
        ):
            shown = math.nan if value is None else round(value, 3)
            yield GaugeMetricFamily(f"{_OWN}_{name}", about, value=shown)
        ended = "Promises ended in time-out."
        yield CounterMetricFamily(f"{_OWN}_gang_promises_expired", ended, value=book.num_expired)
        yield from self._of_pods()

    def _of_pods(self) -> Iterator[Metric]:
        labels = ("namespace", "pod", "node")
        about = "Predicted all-reduce of 100 MB among a pod's GPUs."
        numa = GaugeMetricFamily(NUMA_METRIC, "NUMA nodes of a pod's GPUs.", labels=labels)
        times_s = GaugeMetricFamily(ALL_REDUCE_METRIC, about, labels=labels)
        for grant in self.book.grants.values():
            node = self.book.nodes.get(grant.node)
            if node is None or node.server is None or not grant.gpus:
                continue
            own = (grant.namespace, grant.name or grant.uid, grant.node)
            count = nodes_needed(node.server, places_of(node.server, "gpus", grant.gpus))
            time_s = gpus_all_reduce_s(node.server, grant.gpus)
            if count is not None:
                numa.add_metric(own, count)
            if time_s is not None:
                times_s.add_metric(own, time_s)
        yield from (numa, times_s)
