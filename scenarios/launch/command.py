"""Write what a trainer takes to run a plan: arguments, hosts, schedule, NCCL, and checks."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from des.base.atomic_write import write_together
from des.base.checks import prefixed_errors, system_errors
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option, required
from des.base.lazy import lazy_imports
from des.base.whole_folder import whole_folder

with lazy_imports(__name__):
    from agents.decision import plan_document
    from agents.decision.bound_plan import BoundPlan
    from agents.trainers import table as trainer_table
    from des.base import text_files
    from scenarios.launch import launch_files, launch_page

PROG = "python -m scenarios.launch"
HOSTS_HELP = (
    "hosts of the sites, in the order of the servers of the plan: YAML, such as "
    "'East: [e0, e1]' or 'East: {hosts: [e0, e1], gpus: 8}', or lines of a site, a host and, if "
    "need be, its GPUs"
)
_EXAMPLES = f"""\
examples:
  python -m scenarios.launch plan.json --out launch
      a plan of `eastwest decide --json` for its trainer, on hosts named <site>-<n>
  python -m scenarios.launch plan.json --hosts hosts.yaml --out launch
      on the hosts of the file
  python -m scenarios.launch plan.json --trainer torchtitan --out launch
      for another trainer, where it can run the plan
  python -m scenarios.simulate --launch launch
      the time of a step of what the files say

files written to --out:
  README.md     which site is which stage, how to start, borders, what the trainer is not told
  plan.json     the complete plan
  hosts.txt     hosts in the order of their node ranks; launch.sh starts one, SITE.sbatch all of one
  args.txt      flags of Megatron-LM; or config.toml, schedule.csv, eastwest_config.py of torchtitan
  runtime.json  stages, passes and exchanges of the reference runtime; receives_first.csv and
                receives_stock.csv have the operations of each of its ranks
  nccl.env      settings of NCCL for the borders
  preflight.sh  checks of the hosts of every border, of borders.tsv
  nccl_rate.sh  measures NCCL's rate between two ranks on one GPU, with and without nccl.env
  replica-N/    all of these but the plan for each replica of DiLoCo, with lighthouse.sh for all

exit codes: 0 done; 2 a flag or a file is wrong, or the trainer cannot be told the plan;
  {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of a launch."""

    plan: Path = required("complete plan, of `eastwest decide --json`", is_positional=True)
    out: Path = required("folder for the files; must be new or empty")
    trainer: str | None = option(
        None, "megatron, torchtitan or reference", default_text="the plan's"
    )
    hosts: Path | None = option(None, HOSTS_HELP, is_file=True, default_text="placeholders")


@command(Config, PROG, __doc__, _EXAMPLES)
def main(config: Config) -> None:
    """Run the command on its settings."""
    require_new(config.out)
    content = text_files.read_json(config.plan)
    with prefixed_errors(f"{config.plan}: "):
        bound = plan_document.read_document(content)
    if config.trainer is not None:
        bound = launch_files.for_trainer(bound, config.trainer)
    sys.stdout.write(write_launch(bound, config.hosts, config.out) + "\n")


def require_new(folder: Path) -> None:
    """Refuse a folder that has something in it.

    Raises
    ------
    UsageError
        Naming it.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: must be a new or empty folder, got one that is not")


def write_launch(bound: BoundPlan, hosts: Path | None, folder: Path) -> str:
    """Write the files of a launch, all or none, and return what they are in a sentence.

    Raises
    ------
    ValueError
        If the trainer cannot be told the plan, hosts are wrong, or files cannot be written.
    """
    launch = launch_files.launch_files(bound, hosts)
    with system_errors(f"{folder}: cannot be written"), whole_folder(folder) as growing:
        contents = {growing / name: text.encode() for name, text in launch.files.items()}
        for path in contents:
            path.parent.mkdir(parents=True, exist_ok=True)
        write_together(contents)
        for name in launch.executables:
            (growing / name).chmod(0o755)
    is_equal = launch.step_s == bound.step_s
    compared = "as the plan" if is_equal else f"{launch.step_s / bound.step_s - 1.0:+.3%}"
    DOCUMENT.add(
        step_s=launch.step_s,
        said_step_s=bound.step_s,
        nccl_steps_s=launch.nccl_steps_s,
        files=sorted(launch.files),
    )
    is_over_nccl = trainer_table.trainer_named(bound.trainer).uses_nccl
    nccl = f"\n{launch_page.nccl_text(launch.nccl_steps_s)}" if is_over_nccl else ""
    placeholders = "" if hosts else "; hosts are placeholders, <site>-<n>: give --hosts"
    return (
        f"written: {folder}, {len(launch.files)} files for {bound.trainer}: "
        f"{launch.step_s!r} s a step, {compared}{placeholders}{nccl}"
    )
