"""Answer the cases of reference programs of the serving world, faults of the programs included.

With CASE, a folder or the name of a case that comes with EastWest, the answer is printed as one
JSON document. Without it all cases are answered and compared with the results of the programs.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command
from des.base.document import DOCUMENT
from des.base.flags import JsonFlag, option
from des.base.lazy import lazy_imports
from scenarios.frame.outputs import OutputChoice, parquet_option

with lazy_imports(__name__):
    import pandas as pd

    from scenarios.frame import outputs, rows_report
    from scenarios.reproduce import (
        serving_autoscalers,
        serving_cases,
        serving_clusters,
    )

PROG = "python -m scenarios.reproduce serving"
_EXAMPLES = f"""\
examples:
  {PROG}
  {PROG} splitwise/s03-mixed-pool-overload
  {PROG} --cases my-cases

exit codes: 0 the case is answered, or all cases agree; 1 one does not; 2 bad input;
  {EXIT_CODES}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of the command."""

    case: str = option(
        "", "folder or name of one case", is_positional=True, default_text="compare all"
    )
    cases: Path | None = option(None, "folder with folders of cases", default_text="shipped")
    speed: bool = option(False, "print requests per CPU second of each cluster")
    out: Path | None = option(
        None, "folder for cases.csv, report.html and result.json", default_text="none"
    )
    parquet: bool = parquet_option()


@command(Config, PROG, __doc__, _EXAMPLES)
def main(config: Config) -> int:
    """Run the command on its settings."""
    if not config.case:
        return _compare_all(config)
    found = str(config.case)
    if config.cases is not None and (config.cases / found).is_dir():
        found = str(config.cases / found)
    answer = answer_of(serving_cases.one_case(found))
    DOCUMENT.add(**answer)
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


def answer_of(files: serving_cases.Files) -> dict[str, Any]:
    """Answer one case, whose kind its files show.

    Raises
    ------
    UsageError
        If they are of no kind that is known.
    ValueError
        If a value in them is wrong.
    """
    try:
        if "case.json" in files:
            return serving_autoscalers.autoscaler_answer(serving_cases.json_of(files, "case.json"))
        if "config.json" not in files:
            return _traces_of(files)
        config = serving_cases.json_of(files, "config.json")
        requests = serving_cases.requests_in(files)
        if "layout" in config:
            return serving_clusters.turn_answer(config, requests)
        if "num_replicas" in config:
            return serving_clusters.block_answer(config, requests)
        return serving_clusters.pool_answer(config, requests)
    except KeyError as error:
        raise ValueError(f"case: {error.args[0]} must be given, got none") from error


def _traces_of(files: serving_cases.Files) -> dict[str, Any]:
    answer = serving_cases.traces_answer(files)
    if not answer:
        raise UsageError(
            "CASE must have case.json, config.json with requests.csv, or traces; got "
            f"{', '.join(files) or 'no file'}"
        )
    return answer


def _compare_all(config: Config) -> int:
    folder, choice = config.cases, OutputChoice(parquet=config.parquet)
    cases = serving_cases.shipped_cases() if folder is None else serving_cases.cases_in(folder)
    rows: list[dict[str, object]] = []
    for name, files in cases.items():
        expected = serving_cases.json_of(files, "expected.json")
        start_s = time.process_time()
        answer = answer_of(files)
        used_s = time.process_time() - start_s
        difference = serving_cases.first_difference(expected, answer)
        rows.append({"case": name, "agrees": difference is None, "difference": difference or ""})
        if config.speed and "requests.csv" in files:
            rate = answer["totals"]["num_requests"] / used_s
            rows[-1]["requests_per_cpu_s"] = rate
            sys.stdout.write(f"{rate:8.0f} requests per CPU second  ")
        sys.stdout.write(f"{'ok  ' if difference is None else 'FAIL'} {name} {difference or ''}\n")
    said = f"{sum(bool(row['agrees']) for row in rows)} of {len(cases)} agree"
    DOCUMENT.add(rows=rows)
    sys.stdout.write(f"{said}\n")
    if config.out is not None:
        page = rows_report.rows_report(
            config,
            PROG,
            title="Serving against reference programs",
            question="Does the serving world give the results of the reference programs?",
            answer=f"{said}.",
            tables={"Cases": pd.DataFrame(rows)},
        )
        found = choice.row_files({"cases": pd.DataFrame(rows)}) | choice.report_files(page)
        found |= outputs.result_file(outputs.repeated_settings(config), rows=rows)
        for path in outputs.write_files(config.out, found):
            sys.stdout.write(f"written: {path}\n")
    return 0 if all(row["agrees"] for row in rows) else 1
