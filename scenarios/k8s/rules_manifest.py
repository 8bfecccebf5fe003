"""Prometheus rules on the extender's metrics."""

from scenarios.k8s.manifest_settings import Manifest, ManifestSettings, metadata
from scenarios.k8s.metric_names import ALL_REDUCE_METRIC, NUMA_METRIC


def prometheus_rule(settings: ManifestSettings) -> Manifest:
    """``PrometheusRule``: GPUs over NUMA nodes, slow all-reduce, old state."""
    bound = f"{settings.all_reduce_bound_s:g}"
    pod = "{{ $labels.namespace }}/{{ $labels.pod }} on {{ $labels.node }}"
    rules = [
        _rule(
            "GpusOverSeveralNumaNodes",
            f"{NUMA_METRIC} > 1",
            "warning",
            f"GPUs of {pod} are on {{{{ $value }}}} NUMA nodes",
        ),
        _rule(
            "SlowAllReduce",
            f"{ALL_REDUCE_METRIC} > {bound}",
            "critical",
            f"all-reduce of 100 MB of {pod} takes {{{{ $value }}}} s by prediction, over {bound} s",
        ),
        _rule(
            "OldTopologyState",
            "eastwest_extender_state_age_seconds > 300",
            "warning",
            "the extender decides by a state that is {{ $value }} s old",
        ),
    ]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata("topology-rules", settings),
        "spec": {"groups": [{"name": "topology", "interval": "30s", "rules": rules}]},
    }


def _rule(alert: str, expression: str, severity: str, summary: str) -> Manifest:
    return {
        "alert": alert,
        "expr": expression,
        "for": "5m",
        "labels": {"severity": severity},
        "annotations": {"summary": summary},
    }
