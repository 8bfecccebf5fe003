"""Metrics of a queue: one row each."""

import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from des.cluster.history import History, JobRecord
from des.cluster.policy import Metric


class MetricRow(NamedTuple):
    """A metric, and its line of help."""

    figure: Metric
    about: str


_JCT_S: Callable[[JobRecord], float] = attrgetter("jct_s")


def _mean(of: Callable[[JobRecord], float]) -> Metric:
    return lambda history: float(np.mean(_column(history, of)))


def _quantile(of: Callable[[JobRecord], float], level: float) -> Metric:
    return lambda history: float(np.quantile(_column(history, of), level))


def _column(history: History, of: Callable[[JobRecord], float]) -> Sequence[float]:
    return [of(job) for job in history.jobs] or [math.nan]


def finish_time_fairness(job: JobRecord) -> float:
    """Time from arrival to end over the service needed: 1 for a job that never waits."""
    return job.jct_s / job.service_s


METRICS: Mapping[str, MetricRow] = MappingProxyType(
    {
        "jct_mean_s": MetricRow(_mean(_JCT_S), "mean time from arrival to end"),
        "jct_median_s": MetricRow(_quantile(_JCT_S, 0.5), "its median"),
        "jct_p95_s": MetricRow(_quantile(_JCT_S, 0.95), "its 95th percentile"),
        "jct_p99_s": MetricRow(_quantile(_JCT_S, 0.99), "its 99th percentile"),
        "queue_delay_s": MetricRow(
            _mean(lambda job: job.wait_s), "mean time without GPUs, suspensions included"
        ),
        "responsiveness_s": MetricRow(
            _mean(lambda job: job.first_launch_s - job.arrival_s),
            "mean time from arrival to first launch",
        ),
        "makespan_s": MetricRow(
            lambda history: max(_column(history, lambda job: job.finish_s)), "end of the last job"
        ),
        "utilisation": MetricRow(
            lambda history: history.gpu_seconds.utilisation, "held over present GPU seconds"
        ),
        "fairness_mean": MetricRow(
            _mean(finish_time_fairness), "mean finish-time fairness: jct over service"
        ),
        "fairness_worst": MetricRow(
            _quantile(finish_time_fairness, 1.0), "worst finish-time fairness"
        ),
        "preemptions": MetricRow(
            lambda history: float(history.num_suspensions), "suspensions of all jobs"
        ),
        "failures": MetricRow(
            lambda history: float(history.num_failures), "jobs that a failure has set back"
        ),
        "fragmentation": MetricRow(
            lambda history: history.gpu_seconds.fragmentation,
            "share of free GPU seconds on nodes in part in use",
        ),
        "gpu_hours": MetricRow(
            lambda history: history.gpu_seconds.held / 3600.0, "GPU hours held by all jobs"
        ),
        "lost_gpu_hours": MetricRow(
            lambda history: (history.gpu_seconds.lost + history.gpu_seconds.restart) / 3600.0,
            "GPU hours of restarts and of work that was lost",
        ),
        "num_jobs": MetricRow(lambda history: float(len(history.jobs)), "tracked jobs that ended"),
        "num_unfinished": MetricRow(
            lambda history: float(len(history.unfinished)), "tracked jobs that did not"
        ),
        "num_refused": MetricRow(
            lambda history: float(len(history.refused)), "jobs wider than the cluster"
        ),
    }
)
"""Metrics by the names of their columns."""
