"""A cluster of real nodes: the policies of the simulated job queue decide about processes."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from des.base.command import EXIT_CODES, exit_code_of
from des.base.subcommands import run_subcommand

PROG = "python -m scenarios.cluster"

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "scheduler": ("scheduler", "Decide which jobs run where, by a policy of the simulator"),
        "node": ("node", "Run the ranks of jobs on this machine"),
        "submit": ("submit", "Hand in a job"),
        "status": ("status", "Show nodes and jobs"),
        "drain": ("drain", "Let a node take no more jobs, or take jobs again"),
        "cancel": ("cancel", "End a job"),
        "demo": ("demo", "Scheduler, two nodes, three jobs, one kill: all on this machine"),
    }
)
"""Module of each subcommand, with ``Config``, ``run(config)`` and ``EXAMPLES``; its purpose."""

_EXIT_CODES = f"exit codes: 0 done; 2 bad input; {EXIT_CODES}"

_EXAMPLES = f"""\
examples:
  {PROG} demo
  {PROG} scheduler --policy las --round-duration 30 --port 50051
  {PROG} node --ipaddr 127.0.0.1 --interface lo --gpus fake:4
  {PROG} submit job.json
  {PROG} status

{_EXIT_CODES}
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand and return its exit code."""
    return exit_code_of(
        lambda: run_subcommand(
            COMMANDS,
            argv,
            package=__package__,
            prog=PROG,
            about=__doc__,
            epilog=_EXAMPLES,
            exit_codes=_EXIT_CODES,
        )
    )
