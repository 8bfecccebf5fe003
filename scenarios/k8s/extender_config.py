"""Flags of the extender."""

from dataclasses import dataclass
from pathlib import Path

from des.base.checks import require_count, require_positive
from des.base.command import UsageError
from des.base.flags import option
from scenarios.frame.http_door import MOST_BODY_BYTES, is_loopback


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Flags of the extender."""

    state: Path | None = option(
        None, "file with servers, free GPUs and pods, read again when it changes", is_file=True
    )
    kubeconfig: Path | None = option(
        None,
        "access to the API server: bindings are posted to it; without --state nodes and pods are "
        "watched there",
        is_file=True,
    )
    in_cluster: bool = option(False, "access to the API server by this pod's service account")
    host: str = option("127.0.0.1", "address to listen at")
    port: int = option(8888, "port; 0 takes a free one")
    resources: tuple[str, ...] = option(
        ("nvidia.com/gpu",), "extended resources that are GPUs, such as huawei.com/Ascend910B"
    )
    policy_annotation: str = option(
        "topology.example.com/policy",
        "annotation of pods with their NUMA policy; its prefix is that of gang, gang-size, "
        "gang-gpus, preferred-nodes, gpus and topology",
    )
    default_policy: str = option("best-effort", "NUMA policy of pods without the annotation")
    weights: str | None = option(
        None,
        "YAML file with the weights of a score, or profile: bandwidth, latency, fragmentation and "
        "points for NUMA nodes",
        default_text="topology 40, numa 30, balance 20, preference 10",
    )
    gang_timeout_s: float = option(
        300.0, "time for which GPUs stay promised to the other pods of a gang [s]"
    )
    annotate_gpus: bool = option(
        False,
        "bindings carry GPU numbers and NUMA nodes as annotations, which survive a restart",
    )
    gpu: str | None = option(None, "model of GPUs of which --state does not say it")
    tls_cert: Path | None = option(None, "certificate of the server, PEM; turns TLS on")
    tls_key: Path | None = option(None, "key of the server, PEM")
    client_ca: Path | None = option(
        None, "certificates that sign those of clients; clients without one are refused"
    )
    insecure: bool = option(
        False, "listen beyond loopback although clients show no certificate: all may bind pods"
    )
    max_body_bytes: int = option(
        MOST_BODY_BYTES, "largest body of a request, 4 MiB at most [bytes]"
    )
    request_timeout_s: float = option(10.0, "time in which a request must arrive [s]")
    idle_timeout_s: float = option(120.0, "time for which an unused connection stays open [s]")
    max_connections: int = option(1024, "most connections at once")
    api_timeout_s: float = option(10.0, "time for an answer of the API server [s]")
    poll_s: float = option(1.0, "time between two looks at the state file [s]")

    def __post_init__(self) -> None:
        owner = "extender"
        for name in (
            *("gang_timeout_s", "request_timeout_s", "idle_timeout_s", "api_timeout_s"),
            "poll_s",
        ):
            require_positive(owner, name, getattr(self, name))
        require_count(owner, "max_connections", self.max_connections)
        require_count(owner, "max_body_bytes", self.max_body_bytes, MOST_BODY_BYTES)
        if not 0 <= self.port <= 65535:
            raise UsageError(f"--port must be from 0 to 65535, got {self.port}")
        if self.kubeconfig is not None and self.in_cluster:
            raise UsageError("--kubeconfig and --in-cluster cannot both be given")
        if self.state is None and self.kubeconfig is None and not self.in_cluster:
            raise UsageError("one of --state, --kubeconfig and --in-cluster must be given")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise UsageError("--tls-cert and --tls-key must be given together")
        if self.client_ca is not None and self.tls_cert is None:
            raise UsageError("--client-ca needs --tls-cert and --tls-key")
        if not (is_loopback(self.host) or self.client_ca is not None or self.insecure):
            raise UsageError(
                f"--host {self.host}: must be a loopback address where clients show no "
                "certificate, since all who reach it may bind pods; give --tls-cert, --tls-key "
                "and --client-ca, or --insecure"
            )
