"""Hand in a job: a JSON file with its command and its number of GPUs."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from des.base.document import DOCUMENT
from des.base.flags import required
from des.base.lazy import lazy_imports
from des.base.text_files import read_text
from scenarios.cluster.access import AccessFlags

with lazy_imports(__name__):
    from scenarios.cluster import messages, rpc

_EXAMPLE = {
    "name": "small",
    "launch_command": "python train.py",
    "launch_params": ["--epochs", 3],
    "num_gpus": 2,
    "folder": "/home/me/training",
    "iterations": 6000,
    "service_s": 3600.0,
}

EXAMPLES = f"""\
examples:
  python -m scenarios.cluster submit job.json
  python -m scenarios.cluster submit job.json --ipaddr scheduler.lan --tls-ca ca.crt \\
    --token-file token

job.json, of which launch_command must be given:
  {json.dumps(_EXAMPLE)}
others: tenant, priority, level, is_level_required, domain, gpu_type, uses_lease (default: true)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(AccessFlags):
    """Flags of the command."""

    job: Path = required("file of the job", is_file=True, is_positional=True)


def run(config: Config) -> None:
    """Hand the job in and print its number."""
    form = messages.read_message(messages.JobForm, read_text(config.job), str(config.job))
    reply = rpc.call_once(config, "Submit", form, messages.Submitted)
    DOCUMENT.add(job=reply.job)
    sys.stdout.write(f"job {reply.job}\n")
