"""Remove runs from a store: those to which all that is given applies."""

import time
from dataclasses import dataclass
from pathlib import Path

from calibration.commands.console import say
from calibration.commands.flags import DEFAULT_STORE
from calibration.measuring.measure import ReferenceBackend
from calibration.runs.store import Store
from des.base.checks import require_count, require_positive
from des.base.command import UsageError
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option

EXAMPLES = """\
examples:
  python -m calibration prune --older-than-days 30
  python -m calibration prune --backend unaware --keep-newest 1000
"""
_S_PER_DAY = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of a removal of runs."""

    store: Path = option(DEFAULT_STORE, "file of runs")
    older_than_days: float | None = option(
        None, "only runs from before that", check=require_positive
    )
    keep_newest: int | None = option(None, "keep the N newest runs", check=require_count)
    backend: ReferenceBackend | None = option(None, "only runs of this backend")


def run(config: Config) -> None:
    """Remove the runs and say how many."""
    days = config.older_than_days
    if (days, config.keep_newest, config.backend) == (None, None, None):
        raise UsageError("one of --older-than-days, --keep-newest and --backend must be given")
    num_removed = Store.open(config.store, must_exist=True).prune(
        created_before_s=None if days is None else max(0.0, time.time() - days * _S_PER_DAY),
        backend=config.backend,
        keep_newest=config.keep_newest,
    )
    DOCUMENT.add(store=config.store, num_removed=num_removed)
    say(f"removed {num_removed} runs from {config.store}")
