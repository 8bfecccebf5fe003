"""JSON of mtr: round trips to the last hop, their deviation and loss.

mtr(8), ``ui/report.c``: ``Avg``, ``Best``, ``Wrst`` and ``StDev`` in milliseconds. To 0.93 counts
of hops are texts.
"""

from collections.abc import Iterator
from dataclasses import replace

from calibration.measurements.reading import Reading
from calibration.measurements.source_text import JsonField, SourceText

NAME = "mtr"


def holds(file: SourceText) -> bool:
    """Whether it is a report of ``mtr --json``."""
    return file.has_keys("report") and file.json.get("report", "hubs") is not None


def read(file: SourceText) -> Iterator[Reading]:
    """Read loss, round trip and jitter to the last hop; of no answer, the loss alone.

    Raises
    ------
    ValueError
        If a field is missing or wrong; naming it.
    """
    report = file.json.at("report")
    hops = list(report.at("hubs").items())
    if not hops:
        raise file.wrong("report.hubs must hold at least one hop, got none")
    last = hops[-1]
    sent = int(last.at("Snt").positive())
    lost = last.at("Loss%").non_negative() / 100.0
    source = report.get("mtr", "src")
    loss = Reading(
        file=str(file.path),
        format=NAME,
        what="loss",
        value=lost,
        samples=sent,
        source="" if source is None else source.text(),
        target=_target(report, last),
        facts=(("hops", str(len(hops))),),
        note="" if lost < 1.0 else "nothing answered",
    )
    yield loss
    if lost >= 1.0:
        return
    deviation_s = last.at("StDev").non_negative() / 1e3
    there = replace(
        loss,
        what="round_trip",
        value=last.at("Avg").positive() / 1e3,
        samples=max(1, round(sent * (1.0 - lost))),
        spread=deviation_s,
    )
    yield there
    yield replace(there, what="jitter", value=deviation_s, spread=None)


def _target(report: JsonField, last: JsonField) -> str:
    """Host of the last hop; the one that mtr was run for where it did not answer."""
    host = last.at("host").text()
    return report.at("mtr", "dst").text() if host == "???" else host
