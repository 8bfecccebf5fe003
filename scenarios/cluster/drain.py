"""Let a node take no more jobs; those that it has stay to their end. With --undo it takes jobs."""

import sys
from dataclasses import dataclass

from des.base.document import DOCUMENT
from des.base.flags import option, required
from des.base.lazy import lazy_imports
from des.base.names import printable
from scenarios.cluster.access import AccessFlags

with lazy_imports(__name__):
    from scenarios.cluster import messages, rpc

EXAMPLES = """\
examples:
  python -m scenarios.cluster drain n7
  python -m scenarios.cluster drain n7 --undo
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(AccessFlags):
    """Flags of the command."""

    node: str = required("name of the node", is_positional=True)
    undo: bool = option(False, "let it take jobs again")


def run(config: Config) -> None:
    """Drain the node."""
    wish = messages.DrainRequest(node=config.node, takes_jobs=config.undo)
    rpc.call_once(config, "Drain", wish, messages.Ack)
    DOCUMENT.add(node=config.node, takes_jobs=config.undo)
    taken = "jobs again" if config.undo else "no more jobs"
    sys.stdout.write(f"node {printable(config.node)} takes {taken}\n")
