"""Kubernetes on the topology of devices: a scheduler's extender, a node agent, and manifests."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from des.base.command import EXIT_CODES, exit_code_of
from des.base.subcommands import run_subcommand

PROG = "python -m scenarios.k8s"

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "extender": ("extender", "Answer kube-scheduler: filter, prioritize, preempt, bind"),
        "manifests": (
            "manifests",
            "Write manifests: scheduler, extender, node agent, kubelet, gang, DRA, rules",
        ),
        "agent": ("agent", "Write labels and annotation with its GPUs onto a node"),
    }
)
"""Module of each subcommand, with ``Config``, ``run(config)`` and ``EXAMPLES``; its purpose."""

_EXIT_CODES = f"exit codes: 0 done; 2 bad input; {EXIT_CODES}"

_EXAMPLES = f"""\
examples:
  {PROG} extender --state state.yaml
  {PROG} manifests --simulate dgx-h100 --node gpu-a --out manifests
  {PROG} agent --nvml --node gpu-a --in-cluster
  python -m scenarios.devices labels --file topo.txt --node gpu-a --to patch

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
