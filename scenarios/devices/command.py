"""Topology of servers and clusters: read it, show it, place jobs on it, price collectives."""

from collections.abc import Sequence

from des.base.commands import CommandTable

_PROG = "python -m scenarios.devices"

TABLE = CommandTable(
    package=__package__,
    prog=_PROG,
    about=__doc__,
    commands={
        "show": ("show", "Show a server: matrix, tree, picture, JSON"),
        "labels": ("labels", "Print labels of a cluster's nodes; convert files of clusters"),
        "nodes": ("nodes", "Choose a set of nodes of a cluster by locality"),
        "numa": ("numa", "Bind a process near its GPUs: CPUs, memory nodes, the numactl line"),
        "place": ("place", "Place a job on GPUs of a server, or of several"),
        "group": ("group", "Divide the GPUs of a server into groups of one size"),
        "compare": ("compare", "Compare placements: exact, greedy, first fit, random"),
        "estimate": ("estimate", "Estimate the time of a collective over GPUs of servers"),
    },
    examples=f"""\
a server comes from --file (what nvidia-smi, numactl or sysfs say of it) or from --simulate KIND;
one of the two must be given: no topology is ever made up; a cluster comes from --cluster

examples:
  nvidia-smi topo -m >topo.txt; {_PROG} show --file topo.txt
  {_PROG} show --simulate dgx-h100
  {_PROG} numa --simulate dgx-h100 --gpu-numbers 0,1 --count 8
  {_PROG} place --file topo.txt --gpus 4
  {_PROG} nodes --cluster topology.conf --count 64 --required spine
""",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command on GPU topology and return its exit code."""
    return TABLE.main(argv)
