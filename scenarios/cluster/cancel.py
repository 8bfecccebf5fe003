"""End a job: its ranks are killed."""

import sys
from dataclasses import dataclass

from des.base.document import DOCUMENT
from des.base.flags import required
from des.base.lazy import lazy_imports
from scenarios.cluster.access import AccessFlags

with lazy_imports(__name__):
    from scenarios.cluster import messages, rpc

EXAMPLES = """\
examples:
  python -m scenarios.cluster cancel 3
  python -m scenarios.cluster cancel 3 --ipaddr scheduler.lan --tls-ca ca.crt \\
    --token-file token
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(AccessFlags):
    """Flags of the command."""

    job: int = required("number of the job", is_positional=True)


def run(config: Config) -> None:
    """Cancel the job."""
    rpc.call_once(config, "Cancel", messages.CancelRequest(job=config.job), messages.Ack)
    DOCUMENT.add(job=config.job, is_cancelled=True)
    sys.stdout.write(f"job {config.job} cancelled\n")
