"""Rules for the differences between any two runs, in one table: with their files and reasons."""

import re
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

RULES = (
    Rule(
        files="*/terminal",
        pattern=r"[ \t]+|[─━]{2,}",
        replacement=" ",
        reason=LAYOUT,
    ),
    Rule(files="*/terminal", pattern=r" +$", reason=LAYOUT),
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
    Rule(
        files="*",
        pattern=r'("source_revision": )("[^"]*"|null)',
        replacement=r"\1-",
        reason="the revision of the source is of the code, not of its results",
    ),
    Rule(
        files="*.html",
        pattern=r'(<th scope="row">source_revision</th><td>)[^<]*',
        replacement=r"\1-",
        reason="the revision of the source is of the code, not of its results",
    ),
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
    Rule(files="train/*/metrics.csv", columns=("wall_s", "steps_per_s"), reason=TIMED),
    Rule(
        files="train/*tfevents*",
        pattern=r"^(\d+ (?:wall_s|steps_per_s)) .*$",
        replacement=r"\1 -",
        reason=TIMED,
    ),
    Rule(files="train/*/evaluation.csv", columns=("decision_time_s",), reason=TIMED),
    Rule(files="train/*/calibrations.csv", columns=("waited_s",), reason=TIMED),
    Rule(
        files="train/*/terminal",
        pattern=r"(steps) [\d.,]+k?/s (.*) ETA .*$",
        replacement=r"\1 -/s \2",
        reason=TIMED,
    ),
    Rule(files="train/*/terminal", pattern=r"waited [\d.]+ s", replacement="waited", reason=TIMED),
    Rule(
        files="train/*/terminal",
        pattern=r"calibrating took .* for it\.$",
        replacement="calibrating took -",
        reason=TIMED,
    ),
    Rule(
        files="train/*/terminal",
        pattern=r"^( [a-z_]+(?: \S+±\S+){3}) \S+±\S+( \S+±\S+)$",
        replacement=r"\1 -\2",
        reason=TIMED + ": the fourth figure of a planner is its decision time",
    ),
    Rule(
        files="train/*/terminal",
        pattern=r"Mean ± half[^.]*bold\.",
        replacement="(note)",
        reason=LAYOUT,
    ),
    Rule(
        files="train/*/terminal",
        pattern=r"^( planner|)( \S.*)?\[s\].*$|^ iteration .*$|^ time utilisation .*$",
        replacement="(headings)",
        reason=LAYOUT,
    ),
    Rule(
        files="train/*/report.html",
        pattern=r"</?strong>",
        reason="the best of a column is bold, the column of decision times included",
    ),
    Rule(
        files="train/*/report.html",
        pattern=(
            r'^(<tr><th scope="row">[a-z_]+</th>(?:<td>[^<]*±[^<]*</td>)+)<td>[^<]*</td>'
            r"((?:<td>[^<]*±[^<]*</td>){2}</tr>)$"
        ),
        replacement=r"\1<td>-</td>\2",
        reason=TIMED + ": the last but two of the figures of a planner is its decision time",
    ),
    Rule(files="train/*/report.html", pattern=r"waited [\d.]+ s", reason=TIMED),
    Rule(
        files="train/*/report.html",
        pattern=r"calibrating took [^<]* for it\.",
        replacement="calibrating took -",
        reason=TIMED,
    ),
    Rule(
        files="decide/*",
        pattern=r'"response_ms": \{[^}]*\}',
        replacement='"response_ms": -',
        reason=TIMED,
    ),
    Rule(
        files="compare/*.csv",
        columns=("decision_time_s", "candidates_time_s"),
        reason=TIMED,
    ),
    Rule(
        files="compare/*/terminal",
        pattern=r" [\d.,]+ m?s$",
        replacement=" -",
        reason=TIMED,
    ),
    Rule(files="pareto/*.csv", columns=("timing_s",), reason=TIMED),
    Rule(
        files="pareto/*/terminal",
        pattern=r"^(.*\d) \d+\.\d{3}$",
        replacement=r"\1 -",
        reason=TIMED + ": the last figure of a method",
    ),
    Rule(
        files="*kpi*",
        pattern=r"(?:took|in) \d+\.\d s\b",
        replacement="took -",
        reason=TIMED,
    ),
    Rule(
        files="kpi/*/terminal",
        pattern=rf"^ ?{TIMED_TARGET}.*\n|(?<=[:,]) {TIMED_TARGET}[^,\n]*,?",
        reason=TIMED + ": one of the targets of headroom",
    ),
    Rule(
        files="kpi/*.json",
        pattern=r'\{\s*"name": "' + TIMED_TARGET + r"(?:[^{}]|\{[^{}]*\})*\}",
        replacement="-",
        reason=TIMED + ": one of the targets of headroom",
    ),
    Rule(
        files="kpi/*.csv",
        pattern=rf"^[^,\n]*,{TIMED_TARGET}.*$",
        replacement="-",
        reason=TIMED + ": one of the targets of headroom",
    ),
    Rule(
        files="kpi/*.html",
        pattern=rf'<tr><th scope="row">{TIMED_TARGET}(?:.|\n)*?</tr>',
        replacement="-",
        reason=TIMED + ": one of the targets of headroom",
    ),
    Rule(
        files="calibration/*/terminal",
        pattern=r"^took [\d.]+ s, of which the reference [\d.]+ s$",
        replacement="took -",
        reason=TIMED,
    ),
    Rule(files="others/ablations/*.csv", columns=("response_s",), reason=TIMED),
    Rule(
        files="others/*/terminal",
        pattern=r"(100%) \d+:\d\d:\d\d$",
        replacement=r"\1 -",
        reason=TIMED,
    ),
    Rule(files="learning/hi_ppo/terminal", pattern=r" in \d+ s$", replacement="", reason=TIMED),
    Rule(
        files="learning/hi_ppo/terminal",
        pattern=r"SHA-256 [0-9a-f]{64}",
        replacement="SHA-256 -",
        reason="the bytes of a container of weights; its contents have a hash of their own",
    ),
    Rule(files="learning/local/*timings.csv", columns=("response_s", "cpu_s"), reason=TIMED),
    Rule(
        files="learning/local/*summary.json",
        pattern=r'("(?:response|cpu)_\w+_s": )[^,\n]*',
        replacement=r"\1-",
        reason=TIMED,
    ),
    Rule(
        files="learning/local/terminal",
        pattern=r"^(decision over .* time:).*$",
        replacement=r"\1 -",
        reason=TIMED,
    ),
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
