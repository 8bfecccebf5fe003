"""Cases of traces: rows, ends, sums and maxima of each file of a folder."""

from typing import Any

from des.serving.trace_files import TraceRow, parse_trace
from scenarios.reproduce.serving_cases import Files

_SUFFIXES = (".csv", ".jsonl")


def traces_answer(files: Files) -> dict[str, Any]:
    """Read all traces of a case and sum them up, by file."""
    return {
        name: _summed(parse_trace(content.decode("utf-8"), name), has_blocks=name.endswith("l"))
        for name, content in files.items()
        if name.endswith(_SUFFIXES)
    }


def _summed(rows: tuple[TraceRow, ...], *, has_blocks: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "rows": len(rows),
        "first": _row(rows[0]),
        "last": _row(rows[-1]),
        "sum_prompt_tokens": sum(row.prompt_tokens for row in rows),
        "sum_output_tokens": sum(row.output_tokens for row in rows),
        "max_prompt_tokens": max(row.prompt_tokens for row in rows),
        "max_output_tokens": max(row.output_tokens for row in rows),
        "sum_arrival_s": sum(row.arrival_s for row in rows),
    }
    if has_blocks:
        blocks = [block for row in rows for block in row.prefix_blocks]
        answer |= {"prefix_blocks": len(blocks), "distinct_prefix_blocks": len(set(blocks))}
    return answer


def _row(row: TraceRow) -> dict[str, Any]:
    return {
        "arrival_s": row.arrival_s,
        "prompt_tokens": row.prompt_tokens,
        "output_tokens": row.output_tokens,
    }
