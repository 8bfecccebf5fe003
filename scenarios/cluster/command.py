"""A cluster of real nodes: the policies of the simulated job queue decide about processes."""

from collections.abc import Sequence

from des.base.commands import CommandTable

_PROG = "python -m scenarios.cluster"

TABLE = CommandTable(
    package=__package__,
    prog=_PROG,
    about=__doc__,
    commands={
        "scheduler": ("scheduler", "Decide which jobs run where, by a policy of the simulator"),
        "node": ("node", "Run the ranks of jobs on this machine"),
        "submit": ("submit", "Hand in a job"),
        "status": ("status", "Show nodes and jobs"),
        "drain": ("drain", "Let a node take no more jobs, or take jobs again"),
        "cancel": ("cancel", "End a job"),
        "demo": ("demo", "Scheduler, two nodes, three jobs, one kill: all on this machine"),
    },
    examples=f"""\
examples:
  {_PROG} demo
  {_PROG} scheduler --policy las --round-duration 30
  {_PROG} node --gpus fake:4
  {_PROG} submit job.json
  {_PROG} status
""",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command of the job cluster and return its exit code."""
    return TABLE.main(argv)
