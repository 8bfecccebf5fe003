"""One scheduling decision as JSON: ``python -m agents.decide --network now.json``.

Reads the network as it is now, with the job and where its layers are. Writes the complete plan:
layers of each domain, schedule, size of microbatches and recomputation, and inside each domain its
parallelism (tensor x data x pipeline), sharding of the optimiser and GPUs; the time of an iteration
and of the change; with ``--explain``, what limits the plan. With ``--most-slowdown`` the answer has
the plan that the bound has overruled, if any.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from des import Placement, Plan, Topology, build_workload, read_topology
from des.base.atomic_write import write_atomically
from des.base.checks import require_count, require_positive
from des.base.command import EXIT_CODES, UsageError, exit_code_of
from des.base.flags import option, parse, required
from des.base.lazy import lazy
from des.job.models import MODEL_HELP
from des.plan.replacement import RESTART_S, Replacement

if TYPE_CHECKING:
    from agents.decision import situation as decision_situation
    from agents.decision.situation import Situation
    from agents.hi_ppo import decision_report
    from agents.hi_ppo import policies as hi_ppo_policies
    from agents.hi_ppo.local import decide, policy, shipped
else:
    decision_situation = lazy("agents.decision.situation")
    decision_report = lazy("agents.hi_ppo.decision_report")
    decide = lazy("agents.hi_ppo.local.decide")
    policy = lazy("agents.hi_ppo.local.policy")
    shipped = lazy("agents.hi_ppo.local.shipped")
    hi_ppo_policies = lazy("agents.hi_ppo.policies")


PROG = "python -m agents.decide"
_EPILOG = f"""\
examples:
  python -m agents.decide --network east_central_west
      a first decision for Llama 2 70B on a shipped world
  python -m agents.decide --network now.yaml --last "East*28,Central*26,West*26" --explain
      whether to leave the placement in force, and what limits the plan

exit codes: 0 decided; 2 bad input, or no plan fits;
  {EXIT_CODES}
"""


def _require_three(owner: str, field: str, values: Sequence[float]) -> None:
    if len(values) != 3:
        raise ValueError(
            f"{owner}: {field} must be three numbers such as 0.4,0.3,0.3; "
            f"got {','.join(map(str, values))}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Settings of a decision; the fields are the flags."""

    network: str = required("world as it is now: YAML or JSON, or a shipped name", is_file=True)
    base: str | None = option(
        None, "topology at nominal link speeds", is_file=True, default_text="same as --network"
    )
    checkpoint: Path | None = option(
        None, "checkpoint", is_file=True, default_text="shipped, seed 0"
    )
    local_checkpoint: Path | None = option(
        None, "local agent", is_file=True, default_text="shipped, seed 0"
    )
    across_only: bool = option(False, "decide across domains, not inside them")
    model: str = option("llama2_70b", MODEL_HELP, is_file=True)
    num_layers: int | None = option(None, "number of layers", default_text="the model's")
    microbatches: int = option(32, "microbatches of an iteration")
    last: str | None = option(
        None, "placement in force, such as East*28,West*52; none: a first decision"
    )
    last_schedule: str = option("1f1b_4x", "schedule in force")
    epoch_s: float = option(300.0, "time between decisions [s]")
    iterations_per_epoch: int = option(10, "iterations between decisions")
    restart_s: float = option(RESTART_S, "time that a change of plan takes to restart [s]")
    restart_only: bool = option(False, "a move costs a restart only, no transfer")
    preference: tuple[float, ...] = option(
        (1.0, 0.0, 0.0), "weights of time, utilisation and communication", check=_require_three
    )
    most_slowdown: float | None = option(
        None,
        "a bound for steady iteration times: no plan is taken that needs longer for an iteration, "
        "by more than this share, than the quickest plan known now; such as 0.08",
    )
    explain: bool = option(False, "say what limits the plan, and its neighbours")
    out: Path | None = option(None, "file to write; none: standard output")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> None:
    config = parse(
        Config,
        argv,
        prog=PROG,
        description=__doc__ or "",
        epilog=_EPILOG,
    )
    situation = situation_of(config)
    policies = hi_ppo_policies.Policies.load(config.checkpoint or hi_ppo_policies.shipped())
    local = None
    if not config.across_only:
        local = decide.LocalAgent(
            policy=policy.load_policy(config.local_checkpoint or shipped.shipped_local_file())
        )
    report = decision_report.decide(
        situation,
        policies,
        explains=config.explain,
        most_slowdown=config.most_slowdown,
        local=local,
    )
    for warning in report.warnings:
        sys.stderr.write(f"warning: {warning}\n")
    text = json.dumps(report.as_dict(situation), indent=2, allow_nan=False) + "\n"
    if config.out is None:
        sys.stdout.write(text)
    else:
        write_atomically(config.out, text.encode())


def situation_of(config: Config) -> Situation:
    """Read the files that the configuration names and put the decision together.

    Raises
    ------
    ValueError
        If a file, a name or a number is wrong.
    """
    require_positive(PROG, "epoch_s", config.epoch_s)
    require_count(PROG, "iterations_per_epoch", config.iterations_per_epoch)
    topology = _standing(read_topology(config.network))
    base = topology if config.base is None else _standing(read_topology(config.base))
    names = [domain.name for domain in topology.domains]
    if [domain.name for domain in base.domains] != names:
        raise UsageError(
            f"{PROG}: --base must have the domains {', '.join(names)}, "
            f"got {', '.join(domain.name for domain in base.domains)}"
        )
    workload = build_workload(
        config.model, num_layers=config.num_layers, num_microbatches=config.microbatches
    )
    last = None
    if config.last is not None:
        placement = Placement.parse(config.last, names)
        last = Plan(placement=placement, schedule=config.last_schedule)
        last.check_against(topology, workload)
    time, utilisation, communication = config.preference
    return decision_situation.Situation(
        topology=topology,
        base=base,
        workload=workload,
        epoch=0,
        epoch_s=config.epoch_s,
        iterations_per_epoch=config.iterations_per_epoch,
        replacement=Replacement(restart_s=config.restart_s, pays_bytes=not config.restart_only),
        last_plan=last,
        preference=decision_situation.Preference(
            time=time, utilisation=utilisation, communication=communication
        ),
    )


def _standing(topology: Topology) -> Topology:
    """The world at the figures of its file."""
    return replace(topology, movement=None)


if __name__ == "__main__":
    raise SystemExit(main())
