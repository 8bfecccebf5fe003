"""One scheduling decision as JSON: ``python -m agents.decide --network now.json``.

Reads the network as it is now, with the job and where its layers are; writes the plan, what it
takes, what the change costs and, with ``--explain``, why. With ``--most-slowdown`` it says which
plan the bound has overruled, if it did.

Exit codes: 0 decided; 2 bad input, or no plan fits.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from des import Placement, Plan, Topology, build_workload, read_topology
from des.base.atomic_write import write_atomically
from des.base.checks import require_count, require_positive
from des.base.command import UsageError, exit_code_of
from des.base.lazy import lazy
from des.plan.replacement import RESTART_S, Replacement

if TYPE_CHECKING:
    from agents.decision import situation as decision_situation
    from agents.decision.situation import Preference, Situation
    from agents.hi_ppo import decision_report
    from agents.hi_ppo import policies as hi_ppo_policies
else:
    decision_situation = lazy("agents.decision.situation")
    decision_report = lazy("agents.hi_ppo.decision_report")
    hi_ppo_policies = lazy("agents.hi_ppo.policies")


PROG = "python -m agents.decide"


def parser() -> argparse.ArgumentParser:
    """Flags of the command."""
    flags = argparse.ArgumentParser(
        prog=PROG, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = flags.add_argument
    add("--network", required=True, help="world as it is now: YAML or JSON, or a shipped name")
    add("--base", help="the same world at base figures; as it is now unless told")
    add("--checkpoint", type=Path, help="trained policies; those shipped of seed 0 unless told")
    add("--model", default="llama2_70b", help="preset of the model (default: %(default)s)")
    add("--num-layers", type=int, help="layers that it is divided into; its own unless told")
    add("--microbatches", type=int, default=32, help="per iteration (default: %(default)s)")
    add("--last", help="placement in force, such as East*28,West*52; none: a first decision")
    add("--last-schedule", default="1f1b_4x", help="schedule in force (default: %(default)s)")
    add("--epoch-s", type=float, default=300.0, help="time between decisions [s] (%(default)s)")
    add("--iterations-per-epoch", type=int, default=10, help="between decisions (%(default)s)")
    add("--restart-s", type=float, default=RESTART_S, help="of a change of plan [s] (%(default)s)")
    add(
        "--restart-only", action="store_true", help="model state is everywhere: moves cost no bytes"
    )
    add(
        "--preference",
        default="1,0,0",
        help="weights of time, utilisation and communication (default: %(default)s)",
    )
    add(
        "--most-slowdown",
        type=float,
        help="a bound for steady iteration times: no plan is taken that needs longer for an "
        "iteration, by more than this share, than the quickest plan known now; such as 0.08",
    )
    add("--explain", action="store_true", help="say what limits the plan, and its neighbours")
    add("--out", type=Path, help="file to write instead of standard output")
    return flags


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> None:
    flags = parser().parse_args(argv)
    situation = situation_of(flags)
    policies = hi_ppo_policies.Policies.load(flags.checkpoint or hi_ppo_policies.shipped())
    report = decision_report.decide(
        situation, policies, explains=flags.explain, most_slowdown=flags.most_slowdown
    )
    for warning in report.warnings:
        sys.stderr.write(f"warning: {warning}\n")
    text = json.dumps(report.as_dict(situation), indent=2, allow_nan=False) + "\n"
    if flags.out is None:
        sys.stdout.write(text)
    else:
        write_atomically(flags.out, text.encode())


def situation_of(flags: argparse.Namespace) -> Situation:
    """Read the files that the flags name and put the decision together.

    Raises
    ------
    ValueError
        If a file, a name or a number is wrong.
    """
    require_positive(PROG, "epoch_s", flags.epoch_s)
    require_count(PROG, "iterations_per_epoch", flags.iterations_per_epoch)
    topology = _standing(read_topology(flags.network))
    base = topology if flags.base is None else _standing(read_topology(flags.base))
    names = [domain.name for domain in topology.domains]
    if [domain.name for domain in base.domains] != names:
        raise UsageError(
            f"{PROG}: --base must have the domains {', '.join(names)}, "
            f"got {', '.join(domain.name for domain in base.domains)}"
        )
    workload = build_workload(
        flags.model, num_layers=flags.num_layers, num_microbatches=flags.microbatches
    )
    last = None
    if flags.last is not None:
        placement = Placement.parse(flags.last, names)
        last = Plan(placement=placement, schedule=flags.last_schedule)
        last.check_against(topology, workload)
    return decision_situation.Situation(
        topology=topology,
        base=base,
        workload=workload,
        epoch=0,
        epoch_s=flags.epoch_s,
        iterations_per_epoch=flags.iterations_per_epoch,
        replacement=Replacement(restart_s=flags.restart_s, pays_bytes=not flags.restart_only),
        last_plan=last,
        preference=_preference(flags.preference),
    )


def _standing(topology: Topology) -> Topology:
    """The world at the figures of its file."""
    return replace(topology, movement=None)


def _preference(text: str) -> Preference:
    try:
        time, utilisation, communication = map(float, text.split(","))
    except ValueError as error:
        raise UsageError(
            f"{PROG}: --preference must be three numbers such as 0.4,0.3,0.3; got {text!r}"
        ) from error
    return decision_situation.Preference(
        time=time, utilisation=utilisation, communication=communication
    )


if __name__ == "__main__":
    raise SystemExit(main())
