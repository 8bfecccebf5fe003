"""Schedule a queue of jobs under many policies and compare what becomes of the jobs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext

from agents.cluster.table import ADMISSIONS, ORDERINGS, PLACINGS, PREEMPTIONS
from des.base.command import EXIT_CODES, UsageError
from des.base.commands import command_given
from des.base.document import DOCUMENT
from des.base.flags import to_dict
from des.base.lazy import lazy_imports
from des.base.names import counted
from des.plan.replacement import Replacement
from scenarios.frame.run_folder import RunFolder
from scenarios.job_queue.settings import (
    PRESETS,
    Combination,
    Config,
    checked,
    combinations,
    with_preset,
)
from scenarios.job_queue.traces.forms import FORMS

with lazy_imports(__name__):
    from scenarios.job_queue import folder as output_folder
    from scenarios.job_queue import job_pricing, outputs, runs
    from scenarios.job_queue.runs import QueueRun
    from scenarios.job_queue.traces.trace_jobs import JobTrace

PROG = "python -m scenarios.job_queue"
UNFINISHED = 1
"""Exit code where tracked jobs had not ended when a run did."""


def _list(table: dict[str, str]) -> str:
    width = max(map(len, table))
    return "\n".join(f"  {name:{width}}  {about}" for name, about in table.items())


_EPILOG = f"""\
policies (--policy):
{_list({name: row.about for name, row in ORDERINGS.items()})}

placings (--placing):
{_list({name: row.about for name, row in PLACINGS.items()})}

admissions (--admission):
{_list(dict(ADMISSIONS))}

preemption (--preempting):
{_list({name: row.about for name, row in PREEMPTIONS.items()})}

forms of traces (--trace-form): auto, {", ".join(FORMS)}

presets: {", ".join(PRESETS)}: the workloads of Blox's figures 6, 12 and 13 under its rules, jobs
3000 to 4000 tracked; its Optimus has the service rate of --blox-rate

examples:
  {PROG} --policy fifo,las,srtf --load 4,6 --track 200:400
  {PROG} --preset blox-fig6 --quick
  {PROG} --policy las --admission accept_all,load_1.2 --mix blox --placing best_fit,packed --load 3
  {PROG} --policy optimus,pollux,srtf --elastic-gpus 8 --load 2 --track 100:200
  {PROG} --policy las --mtbf-hours 500 --checkpoint 900 --track 100:200
  {PROG} --network aws_like --pricing network --placing scattered,consolidated --mix blox --load 1
  {PROG} --trace cluster_log.csv --load 0 --policy fifo,tiresias --nodes 64 --gpus-per-node 8

files written to --out:
  config.json       settings that repeat the comparison
  results.csv       one row per run: all metrics, and the hash of its workload
  jobs.csv          one row per run and tracked job
  links.csv         with --pricing network: bytes, mean use and cost of each link
  loads-*.csv       with --network and jobs tracked from 0: loads of the domains over time, for
                    python -m scenarios.training_run --replay-loads
  differences.csv   mean time against the first policy, paired bootstrap over workload seeds
  report.html       tables and pictures: distribution of times, load curves, GPUs wanted, nodes

exit codes: 0 done; 1 tracked jobs had not ended when a run did; 2 a flag or the trace is wrong, or
  the files cannot be written; {EXIT_CODES}
"""


@command_given(Config, PROG, __doc__, _EPILOG)
def main(given: Config, names: frozenset[str]) -> int:
    """Run the command on its settings."""
    config = checked(with_preset(given, names))
    chosen = list(combinations(config))
    job_pricing.pricing_of(config, Replacement())
    job_pricing.queue_nodes(config)
    for combination in chosen:  # every name is known before anything runs
        runs.queue_policy_of(config, combination, (runs.PROBE,))
    trace = runs.read_trace_of(config)
    for line in trace.report if trace is not None else ():
        sys.stdout.write(f"{line}\n")
    settings = to_dict(config)
    with nullcontext() if config.out is None else RunFolder.created(config.out, settings) as folder:
        return _compare(config, trace, chosen, folder)


def _compare(
    config: Config,
    trace: JobTrace | None,
    chosen: Sequence[Combination],
    folder: RunFolder | None,
) -> int:
    results: list[QueueRun] = []
    for result in runs.run_all(config, trace, chosen):
        results.append(result)
        sys.stdout.write(f"{_line(result)}\n")
        sys.stdout.flush()
    frame = outputs.results_frame(results, config.gpu_hour_usd)
    differences = outputs.differences_frame(frame, config.seed)
    DOCUMENT.add(rows=frame, differences=differences, out=config.out)
    for row in differences.to_dict("records"):
        several = row["num_seeds"] > 1
        spread = f" [{row['low']:+.1%}, {row['high']:+.1%}]" if several else ""
        sys.stdout.write(
            f"load {row['load']:g}: {row['scheduler']} against {row['reference']}: mean time "
            f"{row['jct_difference']:+.1%}{spread}, {counted(row['num_seeds'], 'seed')}\n"
        )
    if folder is not None:
        if not any(result.history.jobs for result in results):
            raise UsageError("no tracked job ended in any run, so there is nothing to draw")
        output_folder.write_queue_comparison(
            folder.path, config, results, trace=trace, frame=frame, differences=differences
        )
        sys.stdout.write(f"written: {folder.path}\n")
    return UNFINISHED if any(result.history.unfinished for result in results) else 0


def _line(result: QueueRun) -> str:
    one, history = result.combination, result.history
    unfinished = len(history.unfinished)
    carried = sum(num_bytes for _, num_bytes in history.link_bytes)
    return (
        f"{one.scheduler}, load {one.load:g}, seed {one.seed}: "
        f"{counted(len(history.jobs), 'job')}, mean time "
        f"{history.mean_jct_s:.0f} s, utilisation {history.gpu_seconds.utilisation:.1%}, "
        f"{history.num_suspensions} suspensions, "
        + (f"{carried / 1e12:.3g} TB on links, " if result.links else "")
        + f"workload {result.workload}, "
        f"{result.cpu_s:.2f} s of CPU time" + (f", {unfinished} UNFINISHED" if unfinished else "")
    )
