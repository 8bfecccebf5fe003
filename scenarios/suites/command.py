"""List the worlds of a suite, and write their topologies."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from des.base.checks import nearest
from des.base.command import EXIT_CODES, UsageError, exit_code_of
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option, parse, required
from scenarios.frame.writing import write_files
from scenarios.suites.catalogue import NAMES, SUITES
from scenarios.suites.listing import INDEX_CSV, files_of, suite_index, suite_summary, suite_table

PROG = "python -m scenarios.suites"
_WIDTH = max(map(len, NAMES))
_SUITES = "\n".join(f"  {name:{_WIDTH}}  {one.about}" for name, one in SUITES.items())
_EXAMPLES = f"""\
suites:
{_SUITES}

examples:
  {PROG} hard
  {PROG} eval_static --num 20 --seed 1 --out eval_static

columns:
  K domains, M microbatches, thousands of tokens a step, R transfer/compute ratio at base figures;
  Gbit/s mean of the links; PFLOP/s that a domain attains on average; GPUs of a domain; epochs
  for which the load is held; iterations of an epoch; price of a move: bytes and a restart, or a
  restart alone

files written to --out:
  {INDEX_CSV}             one row per world: its job, load, epochs and price, in SI units
  NAME-SEED-INDEX.yaml  its topology with the law of its links

exit codes: 0 done; 2 the name or a flag is wrong, or the files cannot be written;
  {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Settings of a list of suites; the fields are the flags."""

    name: str = required(f"suite, one of {', '.join(NAMES)}", is_positional=True)
    num: int = option(20, "number of worlds, from the first one on")
    seed: int = option(0, "seed of the worlds")
    out: Path | None = option(None, "new or empty folder for the files; none: nothing is written")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> None:
    config = parse(Config, argv, prog=PROG, description=__doc__ or "", epilog=_EXAMPLES)
    name = config.name
    if name not in SUITES:
        raise UsageError(f"{PROG}: unknown suite {name!r}; {nearest(name, NAMES)}")
    if config.out is not None:
        _check_empty(config.out)
    worlds = SUITES[name].worlds(config.num, config.seed)
    written: list[Path] = []
    if config.out is not None:
        command = f"{PROG} {name} --num {config.num} --seed {config.seed} --out DIR"
        written = write_files(config.out, files_of(worlds, command=command))
    DOCUMENT.add(worlds=suite_index(worlds), files=written)
    sys.stdout.write(f"{suite_table(worlds)}\n{suite_summary(worlds)}\n")
    if config.out is not None:
        sys.stdout.write(f"written: {config.out} ({len(written)} files)\n")


def _check_empty(folder: Path) -> None:
    """Refuse a folder with files: an index names all topologies in its folder."""
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"--out {folder}: must be a new or empty folder, got one with files")
