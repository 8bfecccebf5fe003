"""Names of the metrics of pods, which the Prometheus rules of the manifests watch."""

NUMA_METRIC, ALL_REDUCE_METRIC = "eastwest_pod_numa_nodes", "eastwest_pod_all_reduce_seconds"
