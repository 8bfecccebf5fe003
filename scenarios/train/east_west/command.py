"""Train the scheduler of a world: Hi-PPO on it and on worlds around it, or the flat policy."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from des.base.checks import require_one_of
from des.base.command import EXIT_CODES, UsageError, exit_code_of
from des.base.command_line import PRINT_FLAGS, spelt
from des.base.flags import parse_given, with_quick_sizes
from des.base.lazy import lazy_imports
from des.base.spelling import own_arguments
from des.base.text_files import read_json, read_yaml
from des.worlds.world_flags import LayerFlags
from scenarios.train.east_west.config import POLICIES, QUICK_SIZES, HiPpoConfig
from scenarios.train.tasks import TASKS
from scenarios.train.training_config import PROG, Config
from scenarios.train.world_runs import newest_run

with lazy_imports(__name__):
    from scenarios.train import flat_command
    from scenarios.train.east_west import hi_ppo_run

_TASK_LINES = "\n".join(f"  {name:10}  {task.about}" for name, task in TASKS.items())
_EPILOG = f"""\
The flags are those of --policy hi_ppo, the default. Those of the flat policy, its environment and
its learner: {PROG} flat --help; --backend astra-aware trains it in the environment of that engine

The first argument may be a task, each with flags of its own ({PROG} TASK --help):
{_TASK_LINES}

examples:
  {PROG}
  {PROG} --network my_world.yaml --model llama2_13b --from scratch
  {PROG} local --seed 0 --out runs/local-0
  {PROG} --resume

files written to --out:
  config.json, network.*        settings, versions, source revision; copies of the input files
  placement.csv, moves.csv      one row per update, the same in tensorboard/
  placement.safetensors         the state of the first stage, every 10 updates
  moves.safetensors             that of the second
  calibrations.csv              one row per calibration
  candidates/, validation.csv   weights to choose from, and the episodes by which they are chosen
  hi_ppo.safetensors            the weights that were kept: for decide, kpi and others
  plan.json                     its plan as the trainer runs it: for eastwest simulate --plan
  evaluation.csv, targets.json  one row per held-out episode and method; the targets
  report.html                   all of it, for people

exit codes: 0 done; 2 a flag or a file is wrong, or the folder is in use; {EXIT_CODES}
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> int:
    arguments = own_arguments(argv, PROG)
    if arguments == [PRINT_FLAGS]:
        sys.stdout.write("".join(f"{name}\t\n" for name in TASKS))  # those of main follow
    if not arguments or arguments[0].startswith("-"):
        return run(arguments, PROG)
    name, *flags = arguments
    require_one_of(PROG, "task", name, TASKS)
    return TASKS[name].run(flags, f"{PROG} {name}")


def run(arguments: Sequence[str], prog: str) -> int:
    """Train the scheduler of a world, or its flat policy, and return the exit code."""
    policy = policy_of(arguments)
    _refuse_other_flags(policy, arguments)
    if policy == "flat":
        return flat_command.run(arguments, prog)
    config, given = parse_given(
        HiPpoConfig, arguments, prog=prog, description=__doc__ or "", epilog=_EPILOG
    )
    if config.quick:
        config = with_quick_sizes(config, given, QUICK_SIZES)
    return hi_ppo_run.train_on_world(config, given)


def policy_of(arguments: Sequence[str]) -> str:
    """Return the policy that a command line trains.

    ``--policy`` says it, or ``--backend``, which is of the flat one; else the file of ``--config``,
    or with ``--resume`` the record of the run.

    Raises
    ------
    UsageError
        If it is another one, or the record of a run, as one of before, says none.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for name in ("--policy", "--config", "--out", "--backend"):
        parser.add_argument(name)
    parser.add_argument("--resume", action="store_true")
    try:
        found, _ = parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        raise UsageError(str(error)) from error
    policy = "flat" if found.policy is None and found.backend is not None else found.policy
    if policy is None and found.config is not None:
        policy = _policy_in(Path(found.config), default=POLICIES[0])
    elif policy is None and found.resume:
        folder = newest_run(PROG) if found.out is None else Path(found.out)
        policy = _policy_in(folder / "config.json", default=None)
    policy = POLICIES[0] if policy is None else policy
    require_one_of(PROG, "policy", policy, POLICIES)
    return str(policy)


def _policy_in(path: Path, default: str | None) -> object:
    """The policy that a file names; the default where there is none to be read.

    Raises
    ------
    UsageError
        If the file is the record of a run that names none.
    """
    if not path.is_file():
        return default  # reading its settings says what is wrong
    content = read_json(path) if path.suffix == ".json" else read_yaml(path)
    if not isinstance(content, dict):
        return default
    record = content.get("config")
    if not isinstance(record, dict):
        return content.get("policy", default)
    if "policy" not in record:
        raise UsageError(
            f"{path}: policy must be one of {', '.join(POLICIES)}, got none, as in runs of before; "
            "with --policy flat it is taken as one of the flat policy"
        )
    return record["policy"]


def _refuse_other_flags(policy: str, arguments: Sequence[str]) -> None:
    """Refuse a flag that the other policy alone has, or that layer times of other commands have."""
    kinds = {"hi_ppo": HiPpoConfig, "flat": Config}
    flags = {
        name: {spelt(field.name) for field in dataclasses.fields(kind)}
        for name, kind in kinds.items()
    }
    (other,) = set(POLICIES) - {policy}
    of_layers = {spelt(field.name) for field in dataclasses.fields(LayerFlags)} - flags[policy]
    for argument in arguments:
        word = argument.partition("=")[0].replace("_", "-").replace("--no-", "--", 1)
        if word in of_layers:
            raise UsageError(
                f"{PROG}: {word} must be left out of a training with --policy {policy}, whose "
                "passes are in bf16 and whose layer times are as the file of --network says, got it"
            )
        if word in flags[other] - flags[policy]:
            raise UsageError(
                f"{PROG}: {word} is a flag of --policy {other}, got it with --policy {policy}"
            )
