"""One scheduling decision for people: ``python -m agents.decide --network now.yaml``.

Reads the network as it is now and the job. Prints one plan that the trainer can run: the layers,
parallelism and GPUs of every site, schedule and microbatches, its time, the best plan of each other
kind, what limits it, and what other trainers could do. ``--json`` prints the plan as a document
that ``eastwest simulate --plan`` repeats.

``--deciders hi_ppo`` answers with the quickest bound plan of what the trained policies (Hi-PPO)
propose, ``both`` with the better one of theirs and the search's.

With ``--trainer ideal`` a domain counts as one perfect device that runs any schedule, for theory.
There ``--deciders hi_ppo --json`` is the answer of the policies alone, on both levels; some flags
are for it.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from functools import partial

from agents.answer.config import PROG, Config
from agents.answer.trained import Trained
from agents.trainers.table import DEFAULT_TRAINER, trainer_named
from des.base.atomic_write import write_atomically
from des.base.command import BAD_INPUT, EXIT_CODES, UsageError, exit_code_of
from des.base.flags import from_dict, parse_given, to_dict
from des.base.help_text import terminal_width
from des.base.lazy import lazy_imports
from des.base.strict_json import parse_json

with lazy_imports(__name__):
    from agents.answer import bound_answer, bound_reading, followed, reading
    from agents.decision.bound_plan import BoundPlan
    from agents.decision.training_job import TrainingJob
    from agents.hi_ppo import bound_proposals, decision_report
    from agents.search import objective as search_objective
    from agents.search import search
    from agents.search.bound_search import BoundFound
    from agents.search.objective import PlanObjective
    from des import Topology

_EPILOG = f"""\
examples:
  python -m agents.decide --network east_central_west
      a first decision for Llama 2 70B on a shipped world
  python -m agents.decide --network now.yaml --job job.json --trainer torchtitan --json > plan.json
      another trainer; eastwest simulate --plan plan.json repeats its time
  python -m agents.decide --network now.yaml --job job.json --last plan.json
      whether to leave a plan in force
  python -m agents.decide --network now.yaml --objective cost --at-most "90 s"
      the cheapest plan whose step takes at most 90 s
  python -m agents.decide --network four_domains_1 --job four_domains_1 --trainer ideal
      a shipped example among perfect devices
  python -m agents.decide --network now.yaml --last plan.json --loads West=0.5/0.1/3
      half of West has been taken by others
  python -m agents.decide --network now.yaml --stream < situations.jsonl
      an answer a line for each line such as {{"loads": "West=0.5"}}: stay, or a move that pays

exit codes: 0 decided; 2 bad input, or no plan fits;
  {EXIT_CODES}
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return exit_code_of(lambda: _command(argv))


def decide(
    topology: Topology,
    job: TrainingJob,
    *,
    trainer: str = DEFAULT_TRAINER,
    objective: PlanObjective | None = None,
) -> bound_answer.BoundAnswer:
    """Decide what a trainer can run on the GPUs of a world.

    Returns
    -------
    BoundAnswer
        As text and in notebooks it is the page that the command prints.

    Raises
    ------
    InfeasiblePlacementError
        If no plan fits, naming the least memory that is missing on a GPU.
    ValueError
        If the network moves, no such trainer binds GPUs, or no plan keeps the limits.
    """
    request = search.PlanRequest(topology=topology, job=job, trainer=trainer_named(trainer))
    return bound_answer.answer_bound(request, objective or search_objective.PlanObjective())


def _command(argv: Sequence[str] | None) -> int:
    config, given = parse_given(Config, argv, prog=PROG, description=__doc__ or "", epilog=_EPILOG)
    return run(config, given)


def run(
    config: Config,
    given: frozenset[str],
    watch: Callable[[bound_answer.BoundAnswer], None] | None = None,
) -> int:
    """Answer as the flags say, of which some were given, and return the exit code.

    Parameters
    ----------
    watch
        Called with the answer before it is printed; not where the policies alone answer in JSON,
        nor in a stream.
    """
    reading.require_room(config)
    trained = Trained(config)
    if config.stream:
        return _stream(config, given, trained)
    text = _answer(config, given, trained, watch)
    if config.out is None:
        sys.stdout.write(text)
    else:
        write_atomically(config.out, text.encode())
    return 0


def _answer(
    config: Config,
    given: frozenset[str],
    trained: Trained,
    watch: Callable[[bound_answer.BoundAnswer], None] | None = None,
) -> str:
    """The page or the JSON of one question; warnings go to standard error."""
    if config.is_by_policies_alone:
        return _by_policies(config, given, trained, 2)
    found = _bound_answer(config, given, trained)
    if watch is not None:
        watch(found)
    if config.json:
        return f"{_json(found.as_dict(), 2)}\n"
    is_seen = config.out is None and sys.stdout.isatty()
    return f"{found.as_text(terminal_width() if is_seen else None)}\n"


def _bound_answer(
    config: Config,
    given: frozenset[str],
    trained: Trained,
    last: BoundPlan | None = None,
) -> bound_answer.BoundAnswer:
    """Answer a question; ``last`` is in force where the flags do not say what is."""
    asked = bound_reading.bound_question_of(config, given)
    sketch = trained.sketch  # read before the search: what is wrong with a file is said at once
    propose = None
    if sketch is not None:  # loads the policies
        propose = partial(_propose, asked, sketch)
    is_assumed = config.stream and given.isdisjoint(("restart_s", "restart_only"))
    return bound_answer.answer_bound(
        asked.request,
        asked.objective,
        in_force=asked.in_force or last,
        replacement=None if is_assumed else asked.replacement,
        is_alone=config.stream,
        notes=(*asked.notes, *trained.outside(asked.request.topology, asked.request.job)),
        terms=asked.terms,
        searches=config.deciders != "hi_ppo",
        propose=propose,
    )


def _propose(
    asked: bound_reading.BoundQuestion, sketch: bound_proposals.Sketch, present: BoundPlan | None
) -> BoundFound:
    return bound_proposals.search_proposed(asked.request, sketch, asked.objective, in_force=present)


def _by_policies(
    config: Config, given: frozenset[str], trained: Trained, indent: int | None
) -> str:
    situation = reading.situation_of(config, given)
    assert trained.across is not None
    report = decision_report.decide_by_policies(
        situation,
        trained.across,
        explains=config.explain,
        most_slowdown=config.most_slowdown,
        local=trained.local,
    )
    if not math.isfinite(report.change_s):
        raise UsageError(
            f"{PROG}: --last must be a plan from whose domains links lead to those that lack its "
            f"layers, got {config.last!r}"
        )
    for warning in report.warnings:
        sys.stderr.write(f"warning: {warning}\n")
    return _json(report.as_dict(situation), indent) + "\n"


def _json(content: dict[str, object], indent: int | None) -> str:
    return json.dumps(content, indent=indent, allow_nan=False)


def _stream(config: Config, given: frozenset[str], trained: Trained) -> int:
    """Answer a line for each line of standard input; a line that is wrong gets an error.

    The plan of a line stays in force until one pays that is better, see `followed`.
    """
    code, last = 0, None
    for number, line in enumerate(sys.stdin, start=1):
        if not line.strip():
            continue
        try:
            changed, names = _changed(config, line, f"line {number}")
            if changed.is_by_policies_alone:
                answer = _by_policies(changed, given | names, trained, None)
            else:
                found = _bound_answer(changed, given | names, trained, last)
                document, last = followed.followed(found, reading.rule_of(changed))
                answer = _json(document, None) + "\n"
        except ValueError as error:
            answer, code = _json({"line": number, "error": str(error)}, None) + "\n", BAD_INPUT
        sys.stdout.write(answer)
        sys.stdout.flush()
    return code


def _changed(config: Config, line: str, source: str) -> tuple[Config, frozenset[str]]:
    """The configuration with what a line says, and the names of these fields."""
    content = parse_json(line)
    if not isinstance(content, dict):
        raise UsageError(f"{source}: must be an object of flags, got {line.strip()!r}")
    fixed = {"stream", "json", "out", "deciders", "checkpoint", "local_checkpoint", "across_only"}
    if refused := sorted(fixed & set(content)):
        raise UsageError(f"{source}: {refused[0]} must be given on the command line, not in a line")
    changed = from_dict(type(config), to_dict(config) | content, source=source)
    return changed, frozenset(content)


if __name__ == "__main__":
    raise SystemExit(main())
