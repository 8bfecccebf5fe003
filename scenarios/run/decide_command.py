"""One scheduling decision, as `agents.decide` makes it, with a report of it and launch files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agents import decide
from agents.answer import config as answer_config
from des.base.atomic_write import write_together
from des.base.checks import system_errors
from des.base.command import EXIT_CODES, UsageError, exit_code_of
from des.base.flags import option, parse_given
from des.base.lazy import lazy_imports
from des.base.spelling import SPELLING
from scenarios.frame.outputs import REPORT, OutputChoice, figures_option, repetition_of
from scenarios.launch import command as launch_command

with lazy_imports(__name__):
    from agents.answer.bound_answer import BoundAnswer
    from scenarios.launch import launch_files
    from scenarios.run import decide_report

PROG = "python -m scenarios.decide"
_EPILOG = f"""\
Prints a decision, --json for programs, and writes a report of it to --report and what the trainer
takes to run it to --launch.

examples:
  {PROG} --network east_central_west --report runs/decision.html
      a first decision for Llama 2 70B, with map, plan and rivals as figures
  {PROG} --network now.yaml --last plan.json --report runs/decision.html --figures pdf
      whether to leave a plan in force, and the figures as PDF beside the page
  {PROG} --network now.yaml --launch launch --hosts hosts.yaml
      a first decision, with all files to start it on these hosts; see `eastwest launch --help`

exit codes: 0 decided; 2 bad input, or no plan fits;
  {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(answer_config.Config):
    """Flags of a decision and its report."""

    report: Path | None = option(
        None, "page to write; its figures go beside it in the formats of --figures"
    )
    figures: tuple[str, ...] = figures_option()
    launch: Path | None = option(
        None, "folder for what the trainer takes to run the plan; must be new or empty"
    )
    hosts: Path | None = option(None, f"with --launch: {launch_command.HOSTS_HELP}", is_file=True)

    def __post_init__(self) -> None:
        self._check_launch()
        if self.report is None:
            return
        if self.stream or self.is_by_policies_alone:
            raise UsageError(
                f"{PROG}: report must be left out with stream, and with json where hi_ppo alone "
                f"decides; got {self.report}"
            )
        if self.report.suffix != ".html":
            raise UsageError(f"{PROG}: report must end in .html, got {self.report}")

    def _check_launch(self) -> None:
        if self.launch is None:
            if self.hosts is not None:
                raise UsageError(f"{PROG}: hosts must come with launch, got {self.hosts} alone")
            return
        if self.stream:
            raise UsageError(
                f"{PROG}: launch must be left out with stream, which has many plans; got "
                f"{self.launch}"
            )
        launch_files.require_writer(self.trainer)
        launch_command.require_new(self.launch)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    with SPELLING.called("agents.decide", SPELLING.of(PROG)):  # whose messages these are
        return exit_code_of(lambda: _command(argv))


def _command(argv: Sequence[str] | None) -> int:
    config, given = parse_given(Config, argv, prog=PROG, description=__doc__ or "", epilog=_EPILOG)
    choice = OutputChoice(figures=config.figures)

    answers: list[BoundAnswer] = []
    code = decide.run(config, given, answers.append)
    if config.report is not None:  # after the answer is printed: it is kept where this fails
        for answer in answers:
            page = decide_report.decision_report(answer, repetition_of(PROG, config))
            _write(config.report, choice.report_files(page))
    for answer in answers:
        if config.launch is not None:
            said = launch_command.write_launch(answer.best.bound, config.hosts, config.launch)
            sys.stderr.write(f"{said}\n")
    return code


def _write(path: Path, files: dict[str, bytes]) -> None:
    """Write the page and, next to it under its name, the figures: all or none."""
    with system_errors(f"--report {path}: cannot be written", UsageError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_together(
            {
                path if name == REPORT else path.with_name(f"{path.stem}_{name}"): content
                for name, content in files.items()
            }
        )
