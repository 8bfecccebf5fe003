"""Compare job times by shares of links with the same jobs simulated message by message."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from des.base.command import EXIT_CODES, UsageError, exit_code_of
from des.base.flags import option, parse
from des.base.lazy import lazy

if TYPE_CHECKING:
    import numpy as np

    from scenarios.job_queue import share_errors
else:
    np = lazy("numpy")
    share_errors = lazy("scenarios.job_queue.share_errors")

PROG = "python -m scenarios.link_shares"
_SHARINGS = ("fair", "fifo")
_EPILOG = f"""\
examples:
  {PROG}
  {PROG} --mixes 20 --iterations 4 --sharing fifo

exit codes: 0 done; 2 bad input; {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of the comparison; the fields are the flags."""

    mixes: int = option(100, "mixes of 2 to 4 jobs that share links")
    iterations: int = option(8, "iterations of the median job in the time of a mix")
    sharing: str = option("fair", "sharing of links in the true simulation: fair or fifo")
    seed: int = option(0, "first seed")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> int:
    config = parse(Config, argv, prog=PROG, description=__doc__ or "", epilog=_EPILOG)
    if config.sharing not in _SHARINGS:
        raise UsageError(
            f"--sharing: must be one of {', '.join(_SHARINGS)}; got {config.sharing!r}"
        )

    def tell(number: int) -> None:
        sys.stderr.write(f"\r{number} of {config.mixes} mixes")
        sys.stderr.flush()

    errors, slower = share_errors.share_errors(
        config.mixes, config.iterations, config.seed, config.sharing, tell
    )
    sys.stderr.write("\n")
    off = np.abs(errors)
    sys.stdout.write(
        f"{config.sharing}: {len(errors)} jobs of {config.mixes} mixes, in the mean "
        f"{slower.mean() - 1.0:.1%} slower than alone\n"
        f"error of their times by shares: mean {off.mean():.2%}, 95th percentile "
        f"{np.quantile(off, 0.95):.2%}, largest {off.max():.1%}, bias {errors.mean():+.2%}\n"
        f"if nothing were shared: mean {(1.0 - 1.0 / slower).mean():.2%}\n"
    )
    return 0
