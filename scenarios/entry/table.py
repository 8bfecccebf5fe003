"""Table of all commands: one row makes a command known to ``eastwest`` and to its help."""

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from des.base.command import UsageError
from des.base.extras import needed_extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command.

    Attributes
    ----------
    name
        Word behind ``eastwest``.
    module
        Module that ``python -m`` runs too; its ``main(argv)`` is imported when the command is run.
    about
        Purpose in one sentence.
    extra
        Extra of the package that brings the command; empty: every installation has it.
    """

    name: str
    module: str
    about: str
    extra: str = ""

    def run(self, argv: list[str] | None) -> int:
        """Run the command; None takes the arguments of the process.

        Raises
        ------
        UsageError
            If the extra that brings the command is missing.
        """
        if self.extra and find_spec(self.module) is None:
            raise UsageError(f"{self.name} {needed_extra(self.extra)}")
        spec = find_spec(self.module)
        is_package = spec is not None and spec.submodule_search_locations is not None
        found = import_module(f"{self.module}.__main__" if is_package else self.module)
        code: int = found.main(argv)
        return code


def _row(name: str, module: str, about: str, extra: str = "") -> Command:
    return Command(name=name, module=module, about=about, extra=extra)


COMMANDS: tuple[Command, ...] = (
    _row("simulate", "scenarios.simulate", "Simulate one training iteration of a plan"),
    _row("decide", "scenarios.decide", "Decide where to place what, and when to change a plan"),
    _row("watch", "scenarios.watch", "Watch a training: stay with a plan, or move when it pays"),
    _row("launch", "scenarios.launch", "Write what a trainer takes to run a plan"),
    _row("rehearse", "scenarios.rehearse", "Run a launch on one machine, over emulated links"),
    _row("train", "scenarios.east_west_train", "Train a policy: the scheduler of a world, or TASK"),
    _row("compare", "scenarios.compare", "Compare planners and rules of re-planning"),
    _row("kpi", "scenarios.kpi", "Measure every target, with a verdict on each"),
    _row("measure", "scenarios.measuring", "Make a world of measurements, or bring one up to date"),
    _row("calibrate", "calibration", "Fit the simulator to ASTRA-sim or to measurements"),
    _row("reproduce", "scenarios.reproduce", "Compare the simulator with published figures"),
    _row("explore", "scenarios.explore", "Explore worlds and plans in a browser", extra="explore"),
    _row("run", "scenarios.training_run", "Simulate a long training run on moving links"),
    _row("job-queue", "scenarios.job_queue", "Compare schedulers of a queue of jobs"),
    _row("cluster", "scenarios.cluster", "Run a queue of jobs on real nodes"),
    _row("autoscale", "scenarios.autoscale", "Compare policies that scale an inference fleet"),
    _row(
        "decide-scaling",
        "agents.serving.decide",
        "Decide how many instances each pool of a fleet should have",
    ),
    _row("devices", "scenarios.devices", "Read topologies of servers; place jobs on their GPUs"),
    _row("k8s", "scenarios.k8s", "Answer kube-scheduler by topology; node agent; manifests"),
    _row("topology", "scenarios.make_topology", "Write a topology file: drawn, or a preset"),
    _row("suites", "scenarios.suites", "List the worlds of a suite, write their topologies"),
    _row("robustness", "scenarios.robustness", "Measure slowdowns by changes of the links"),
    _row("pareto", "scenarios.pareto", "Measure fronts of time, cost and utilisation"),
    _row("fidelity", "scenarios.fidelity", "Compare all levels of detail, up to packets"),
    _row(
        "enumerate-plans",
        "scenarios.enumerate_plans",
        "Compare the search with the best of all plans of small worlds",
    ),
    _row("link-shares", "scenarios.link_shares", "Compare shares of links with their simulation"),
    _row("ablations", "scenarios.ablations", "Measure the worth of each part of Hi-PPO"),
    _row(
        "ablations-flat",
        "scenarios.ablations.flat",
        "Compare Hi-PPO with a flat policy of each world",
    ),
    _row(
        "ablations-moves",
        "scenarios.ablations.moves",
        "Compare a move policy for all families with fixed rules",
    ),
    _row(
        "ablations-preference",
        "scenarios.ablations.preference",
        "Compare policies with and without the preference",
    ),
    _row("score", "scenarios.score", "Score a policy on the benchmark of sites that come and go"),
    _row("sweep", "scenarios.sweep", "Train over a grid of seeds and hyper-parameters"),
    _row("compare-seeds", "scenarios.compare_seeds", "Train several seeds and show their spread"),
    _row("curves", "scenarios.training_curves", "Draw the training curves of placement policies"),
    _row("track", "scenarios.track", "Store a run folder in MLflow"),
    _row("rewrite-page", "scenarios.rewrite_page", "Run the commands of a page and renew its text"),
    _row("doctor", "scenarios.entry.doctor", "Say what is installed, and what each part enables"),
    _row("completion", "scenarios.entry.completion", "Print the completion of bash or zsh"),
)
"""All commands, in the order of the help."""
