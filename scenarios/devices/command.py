"""Topology of servers and clusters: read it, show it, place jobs on it, price collectives."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from des.base.command import EXIT_CODES, exit_code_of
from des.base.subcommands import run_subcommand

PROG = "python -m scenarios.devices"

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "show": ("show", "Show a server: matrix, tree, picture, JSON"),
        "labels": ("labels", "Print labels of a cluster's nodes; convert files of clusters"),
        "nodes": ("nodes", "Choose a set of nodes of a cluster by locality"),
        "numa": ("numa", "Bind a process near its GPUs: CPUs, memory nodes, the numactl line"),
        "place": ("place", "Place a job on GPUs of a server, or of several"),
        "group": ("group", "Divide the GPUs of a server into groups of one size"),
        "compare": ("compare", "Compare placements: exact, greedy, first fit, random"),
        "estimate": ("estimate", "Estimate the time of a collective over GPUs of servers"),
    }
)
"""Module of each subcommand, with ``Config``, ``run(config)`` and ``EXAMPLES``; its purpose."""

_EXIT_CODES = f"exit codes: 0 done; 2 bad input; {EXIT_CODES}"

_EXAMPLES = f"""\
a server comes from --file (what nvidia-smi, numactl or sysfs say of it) or from --simulate KIND;
one of the two must be given: no topology is ever made up; a cluster comes from --cluster

examples:
  nvidia-smi topo -m >topo.txt; {PROG} show --file topo.txt
  {PROG} show --simulate dgx-h100
  {PROG} numa --simulate dgx-h100 --gpus 0,1 --count 8
  {PROG} place --file topo.txt --gpus 4
  {PROG} nodes --cluster topology.conf --count 64 --required spine

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
