"""Node of a cluster: runs the ranks of jobs on this machine, as the scheduler orders.

SIGTERM or Ctrl-C let it leave in order: its jobs leave at the end of an iteration and wait. If it
is killed, its jobs end with it, and continue elsewhere from their last checkpoint.
"""

import asyncio
import logging
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from des.base.document import DOCUMENT
from des.base.flags import option
from des.base.interruption import heard_handlers
from des.base.lazy import lazy_imports
from des.base.names import require_name
from des.base.speaking import SPEAKER
from scenarios.cluster.access import AccessFlags
from scenarios.cluster.machine import address_of, num_gpus_of
from scenarios.frame.log_lines import log_to_stderr

with lazy_imports(__name__):
    from scenarios.cluster import node_agent, rpc

EXAMPLES = """\
examples:
  python -m scenarios.cluster node --gpus fake:4
  python -m scenarios.cluster node --ipaddr 10.0.0.1 --interface eth0 --tls-ca ca.crt \\
    --token-file token --domain east --rack r1

variables of each rank, in addition to the environment of this command:
  job_id dist_rank world_size local_gpu_id local_accessible_gpu local_accessible_gpus
  master_ip_address master_port LEASE_SOCKET
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(AccessFlags):
    """Flags of the node."""

    interface: str = option("lo", "network interface at whose address ranks find each other")
    gpus: str = option("auto", "auto: those of the machine; a number of them; fake:4: only in name")
    name: str = option("", "name of the node", default_text="name of the machine")
    domain: str = option("", "data centre of the node", default_text="none")
    rack: str = option("", "rack of the node", default_text="none")
    gpu_type: str = option("", "type of its GPUs", default_text="none")
    logs: Path = option(Path("cluster-logs"), "folder for the output of ranks, a file each")


def run(config: Config) -> None:
    """Work until a signal lets the node leave."""
    log_to_stderr(logging.WARNING)
    name = config.name or socket.gethostname()
    require_name("node", "name", name)
    identity = node_agent.NodeIdentity(
        name=name,
        address=address_of(config.interface),
        num_gpus=num_gpus_of(config.gpus),
        gpu_type=config.gpu_type,
        domain=config.domain,
        rack=config.rack,
    )
    config.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
    with SPEAKER.resting():
        asyncio.run(_work(config, identity))
    DOCUMENT.add(node=name)


async def _work(config: Config, identity: "node_agent.NodeIdentity") -> None:
    loop = asyncio.get_running_loop()
    agent = node_agent.NodeAgent(identity, rpc.SchedulerLink(config), config.logs)
    for number in heard_handlers():
        loop.add_signal_handler(number, agent.leave)
    await agent.run(_say)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
