"""Remove runs from a store: those to which all that is given applies."""

import argparse
import time
from pathlib import Path

from calibration.commands.console import say
from calibration.commands.ending import UsageError
from calibration.commands.flags import DEFAULT_STORE, add_flag, count, positive
from calibration.commands.reference import BACKENDS
from calibration.runs.store import Store

EXAMPLES = """\
examples:
  python -m calibration prune --older-than-days 30
  python -m calibration prune --backend unaware --keep-newest 1000
"""
_S_PER_DAY = 86400.0


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    add_flag(parser, "--store", Path, DEFAULT_STORE, "file of runs")
    add_flag(parser, "--older-than-days", positive, None, "only runs from before that")
    add_flag(parser, "--keep-newest", count, None, "keep the N newest runs")
    parser.add_argument("--backend", choices=BACKENDS, help="only runs of this backend")


def run(arguments: argparse.Namespace) -> int:
    """Remove the runs and say how many."""
    days = arguments.older_than_days
    if (days, arguments.keep_newest, arguments.backend) == (None, None, None):
        raise UsageError("one of --older-than-days, --keep-newest and --backend must be given")
    num_removed = Store.open(arguments.store, must_exist=True).prune(
        created_before_s=None if days is None else max(0.0, time.time() - days * _S_PER_DAY),
        backend=arguments.backend,
        keep_newest=arguments.keep_newest,
    )
    say(f"removed {num_removed} runs from {arguments.store}")
    return 0
