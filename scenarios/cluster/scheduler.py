"""Scheduler of a cluster of real nodes: a policy of the simulator decides which jobs run where.

It keeps its state in a file, so that it may be killed at any moment and started again: nodes run
their jobs on meanwhile, for the time of their lease.
"""

from des.base.lazy import lazy_imports
from scenarios.cluster.scheduler_config import Config

with lazy_imports(__name__):
    from scenarios.cluster import scheduler_server

EXAMPLES = """\
examples:
  python -m scenarios.cluster scheduler --policy las --round-duration 30
  python -m scenarios.cluster scheduler --policy fifo_backfill --placing consolidated --state s.db
  python -m scenarios.cluster scheduler --host 0.0.0.0 --tls-cert tls.crt --tls-key tls.key \\
    --token-file token

policies, placings, admissions and rules of preemption are those of
  python -m scenarios.job_queue --help
"""


def run(config: Config) -> int:
    """Schedule until SIGTERM or Ctrl-C."""
    return scheduler_server.serve_cluster(config)
