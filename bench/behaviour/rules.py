"""Rules for the differences between any two runs, in one table: with their files and reasons."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A pattern that is replaced in texts, or columns of a CSV file whose cells are emptied.

    Attributes
    ----------
    files
        Case and file, such as ``train/*/out/metrics.csv``; ``*`` also spans folders.
    pattern, replacement
        A regular expression in multi-line mode; without one, ``columns`` are given.
    columns
        Headings of a CSV file.
    reason
        Why runs of the same code differ here.
    """

    files: str
    reason: str
    pattern: str = ""
    replacement: str = ""
    columns: tuple[str, ...] = ()


TIMED = "a wall or CPU time of this run"
TIMED_TARGET = "decision time against"
LAYOUT = "the width of a printed column, and so its lines, follows the timings in it"


def _text(reason: str) -> Callable[..., Rule]:
    """Return the constructor of rules on texts that differ for one reason."""

    def rule(files: str, pattern: str, replacement: str = "", *, which: str = "") -> Rule:
        because = f"{reason}: {which}" if which else reason
        return Rule(files=files, pattern=pattern, replacement=replacement, reason=because)

    return rule


def _timed_columns(files: str, *columns: str) -> Rule:
    return Rule(files=files, columns=columns, reason=TIMED)


_timed = _text(TIMED)
_laid_out = _text(LAYOUT)
_revised = _text("the revision of the source is of the code, not of its results")

_HEADROOM = "one of the targets of headroom"

RULES = (
    _laid_out("*/terminal", r"[ \t]+|[─━]{2,}", " "),
    _laid_out("*/terminal", r" +$"),
    Rule(
        files="*/terminal",
        pattern=r"^compiling\b.*\n",
        reason="what is compiled depends on the cache of this machine",
    ),
    Rule(
        files="decide/*/terminal",
        pattern=r" --across-only\b",
        reason="the baseline is of a revision that decided across domains only, without the flag",
    ),
    _revised("*", r'("source_revision": )("[^"]*"|null)', r"\1-"),
    _revised("*.html", r'(<th scope="row">source_revision</th><td>)[^<]*', r"\1-"),
    Rule(
        files="*",
        pattern=r'("(?:python|eastwest|numpy|torch)": )"[^"]*"',
        replacement=r"\1-",
        reason="versions are of the installation",
    ),
    Rule(
        files="astra/*",
        pattern=r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+\]",
        replacement="[time]",
        reason="the date of a line of the log",
    ),
    _timed_columns("train/*/metrics.csv", "wall_s", "steps_per_s"),
    _timed("train/*tfevents*", r"^(\d+ (?:wall_s|steps_per_s)) .*$", r"\1 -"),
    _timed_columns("train/*/evaluation.csv", "decision_time_s"),
    _timed_columns("train/*/calibrations.csv", "waited_s"),
    _timed("train/*/terminal", r"(steps) [\d.,]+k?/s (.*) ETA .*$", r"\1 -/s \2"),
    _timed("train/*/terminal", r"waited [\d.]+ s", "waited"),
    _timed("train/*/terminal", r"calibrating took .* for it\.$", "calibrating took -"),
    _timed(
        "train/*/terminal",
        r"^( [a-z_]+(?: \S+±\S+){3}) \S+±\S+( \S+±\S+)$",
        r"\1 -\2",
        which="the fourth figure of a planner is its decision time",
    ),
    _laid_out("train/*/terminal", r"Mean ± half[^.]*bold\.", "(note)"),
    _laid_out(
        "train/*/terminal",
        r"^( planner|)( \S.*)?\[s\].*$|^ iteration .*$|^ time utilisation .*$",
        "(headings)",
    ),
    Rule(
        files="train/*/report.html",
        pattern=r"</?strong>",
        reason="the best of a column is bold, the column of decision times included",
    ),
    _timed(
        "train/*/report.html",
        r'^(<tr><th scope="row">[a-z_]+</th>(?:<td>[^<]*±[^<]*</td>)+)<td>[^<]*</td>'
        r"((?:<td>[^<]*±[^<]*</td>){2}</tr>)$",
        r"\1<td>-</td>\2",
        which="the last but two of the figures of a planner is its decision time",
    ),
    _timed("train/*/report.html", r"waited [\d.]+ s"),
    _timed("train/*/report.html", r"calibrating took [^<]* for it\.", "calibrating took -"),
    _timed("decide/*", r'"response_ms": \{[^}]*\}', '"response_ms": -'),
    _timed_columns("compare/*.csv", "decision_time_s", "candidates_time_s"),
    _timed("compare/*/terminal", r" [\d.,]+ m?s$", " -"),
    _timed_columns("pareto/*.csv", "timing_s"),
    _timed(
        "pareto/*/terminal", r"^(.*\d) \d+\.\d{3}$", r"\1 -", which="the last figure of a method"
    ),
    _timed("*kpi*", r"(?:took|in) \d+\.\d s\b", "took -"),
    _timed(
        "kpi/*/terminal",
        rf"^ ?{TIMED_TARGET}.*\n|(?<=[:,]) {TIMED_TARGET}[^,\n]*,?",
        which=_HEADROOM,
    ),
    _timed(
        "kpi/*.json",
        r'\{\s*"name": "' + TIMED_TARGET + r"(?:[^{}]|\{[^{}]*\})*\}",
        "-",
        which=_HEADROOM,
    ),
    _timed("kpi/*.csv", rf"^[^,\n]*,{TIMED_TARGET}.*$", "-", which=_HEADROOM),
    _timed(
        "kpi/*.html", rf'<tr><th scope="row">{TIMED_TARGET}(?:.|\n)*?</tr>', "-", which=_HEADROOM
    ),
    _timed("calibration/*/terminal", r"^took [\d.]+ s, of which the reference [\d.]+ s$", "took -"),
    _timed_columns("others/ablations/*.csv", "response_s"),
    _timed("others/*/terminal", r"(100%) \d+:\d\d:\d\d$", r"\1 -"),
    _timed("learning/hi_ppo/terminal", r" in \d+ s$"),
    Rule(
        files="learning/hi_ppo/terminal",
        pattern=r"SHA-256 [0-9a-f]{64}",
        replacement="SHA-256 -",
        reason="the bytes of a container of weights; its contents have a hash of their own",
    ),
    _timed_columns("learning/local/*timings.csv", "response_s", "cpu_s"),
    _timed("learning/local/*summary.json", r'("(?:response|cpu)_\w+_s": )[^,\n]*', r"\1-"),
    _timed("learning/local/terminal", r"^(decision over .* time:).*$", r"\1 -"),
)

NAMES = (
    Rule(
        files="*",
        pattern=r"events\.out\.tfevents\.[^/]*$",
        replacement="events.out.tfevents",
        reason="TensorBoard names its files by time, host and process",
    ),
)


def applied(text: str, file: str, rules: tuple[Rule, ...] = RULES) -> str:
    """Return a text after all patterns that hold for its file, in the order of the table."""
    for rule in rules:
        if rule.pattern and fnmatchcase(file, rule.files):
            text = re.sub(rule.pattern, rule.replacement, text, flags=re.MULTILINE)
    return text


def emptied_columns(file: str, rules: tuple[Rule, ...] = RULES) -> frozenset[str]:
    """Return the headings whose cells say nothing that two runs have in common."""
    return frozenset(
        name for rule in rules if fnmatchcase(file, rule.files) for name in rule.columns
    )
