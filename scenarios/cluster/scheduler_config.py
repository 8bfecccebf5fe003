"""Flags of a scheduler of real nodes."""

from dataclasses import dataclass
from pathlib import Path

from des.base.checks import nearest, require_non_negative, require_positive
from des.base.command import UsageError
from des.base.flags import option
from scenarios.cluster.access import require_port, require_proof, token_of
from scenarios.cluster.tracked_jobs import TrackFlags

_LEVELS = ("", "node", "rack", "domain")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(TrackFlags):
    """Flags of the scheduler."""

    policy: str = option("las", "ordering, such as fifo, las, srtf, tiresias, priority, fair_share")
    policy_file: Path | None = option(
        None, "policy of eastwest train queue, for --policy ppo", is_file=True
    )
    placing: str = option("first_free", "placing, such as consolidated, best_fit, packed")
    admission: str = option("accept_all", "admission, such as load_1.2 or quota_8")
    preempting: str = option("worst_first", "rule of preemption, such as one_unit or never")
    level: str = option("", "level that jobs should share: node, rack, domain", default_text="any")
    level_required: bool = option(False, "wait until a job fits into one unit of --level")
    round_duration: float = option(
        30.0, "decisions at multiples of it only [s]; 0: at every event, preemption every 300 s"
    )
    state: str = option(
        "cluster.db",
        "SQLite file with the state, made if it is not there; or redis://HOST:PORT/DB#NAME",
    )
    socket: Path | None = option(
        None,
        "socket to listen at, in a folder of mode 0700 of this user",
        default_text="cluster.sock in the user's caches",
    )
    host: str = option(
        "", "address to listen at in its place; needs TLS and a token", default_text="none"
    )
    port: int = option(50051, "port at --host; 0 takes a free one")
    token_file: Path | None = option(
        None, "file with the shared secret, readable by its owner alone", is_file=True
    )
    tls_cert: Path | None = option(None, "certificate, PEM; turns TLS on", is_file=True)
    tls_key: Path | None = option(None, "its key, PEM", is_file=True)
    lease: float = option(
        60.0, "time without contact after which a node ends its jobs, and others get them [s]"
    )
    grace: float = option(60.0, "time in which ranks that are told to leave are gone [s]")

    def __post_init__(self) -> None:
        require_non_negative("scheduler", "round_duration", self.round_duration)
        require_positive("scheduler", "lease", self.lease)
        require_positive("scheduler", "grace", self.grace)
        require_port(self.port, 0)
        self.tracked()
        if self.level not in _LEVELS:
            raise UsageError(f"--level: unknown {self.level!r}; {nearest(self.level, _LEVELS[1:])}")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise UsageError("--tls-cert and --tls-key must be given together")
        require_proof(
            self.host,
            "--host",
            has_tls=self.tls_cert is not None,
            has_token=bool(token_of(self.token_file)),
            tls_flag="--tls-cert",
        )
