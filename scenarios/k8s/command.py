"""Kubernetes on the topology of devices: a scheduler's extender, a node agent, and manifests."""

from collections.abc import Sequence

from des.base.commands import CommandTable

_PROG = "python -m scenarios.k8s"

TABLE = CommandTable(
    package=__package__,
    prog=_PROG,
    about=__doc__,
    commands={
        "extender": ("extender", "Answer kube-scheduler: filter, prioritize, preempt, bind"),
        "manifests": (
            "manifests",
            "Write manifests: scheduler, extender, node agent, kubelet, gang, DRA, rules",
        ),
        "agent": ("agent", "Write labels and annotation with its GPUs onto a node"),
    },
    examples=f"""\
examples:
  {_PROG} extender --state state.yaml
  {_PROG} manifests --simulate dgx-h100 --node gpu-a --out manifests
  {_PROG} agent --nvml --node gpu-a --in-cluster
  python -m scenarios.devices labels --file topo.txt --node gpu-a --to patch
""",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command of Kubernetes scheduling and return its exit code."""
    return TABLE.main(argv)
