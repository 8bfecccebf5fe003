"""The flags of the commands: ASTRA-sim's own, read as it reads them, and a few extensions."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from astra_sim.base.values import dataclass
from astra_sim.files.errors import AstraSimUsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Settings of a command line; scales of computation and communication have no effect."""

    workload_configuration: str
    system_configuration: str
    remote_memory_configuration: str
    network_configuration: str
    comm_group_configuration: str | None
    num_queues_per_dim: int
    injection_scale: float
    rendezvous_protocol: bool
    compute_scale: float
    comm_scale: float
    logging_configuration: str
    logging_folder: str
    strict: bool
    trace: str | None
    multi_dimensional: bool


class _Flag(NamedTuple):
    """Specification of one flag; without a default it may be left out only if it is not required.

    A switch is true as a bare flag: a word after it is not its value.
    """

    parse: Callable[[str], Any]
    value: str
    explanation: str
    default: str | None = None
    is_required: bool = False
    is_switch: bool = False


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "1", "false", "0"):
        raise AstraSimUsageError(f"must be true, 1, false or 0, got {text!r}")
    return text.lower() in ("true", "1")


def _count(text: str) -> int:
    if not re.fullmatch("[0-9]+", text) or not int(text):
        raise AstraSimUsageError(f"must be an integer of at least 1, got {text!r}")
    return int(text)


def _number(text: str) -> float:
    is_number = re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text)
    number = float(text) if is_number else math.nan
    if not math.isfinite(number):
        raise AstraSimUsageError(f"must be a finite number, got {text!r}")
    return number


def _scale(text: str) -> float:
    scale = _number(text)
    if scale < 0:
        raise AstraSimUsageError(f"must not be negative, got {text!r}")
    return scale


def _groups(text: str) -> str | None:
    """Path of the file of groups; one that contains ``empty`` means none."""
    return None if "empty" in text else text


def _switch(explanation: str) -> _Flag:
    return _Flag(_truth, "BOOL", explanation, "false", is_switch=True)


_FLAGS = {
    "workload-configuration": _Flag(
        str, "PREFIX", "execution traces: rank r reads PREFIX.r.et", is_required=True
    ),
    "system-configuration": _Flag(str, "FILE", "system, JSON", is_required=True),
    "remote-memory-configuration": _Flag(str, "FILE", "remote memory, JSON", is_required=True),
    "network-configuration": _Flag(str, "FILE", "network, YAML", is_required=True),
    "comm-group-configuration": _Flag(
        _groups,
        "FILE",
        "communicator groups, JSON; a path containing 'empty' means none",
        "empty",
    ),
    "num-queues-per-dim": _Flag(_count, "N", "queues of a dimension", "1"),
    "injection-scale": _Flag(_scale, "X", "multiplies endpoint-delay", "1"),
    "rendezvous-protocol": _switch("messages start when their receivers are ready"),
    "compute-scale": _Flag(_number, "X", "has no effect", "1"),
    "comm-scale": _Flag(_number, "X", "has no effect", "1"),
    "logging-configuration": _Flag(str, "FILE", "has no effect", "empty"),
    "logging-folder": _Flag(str, "FOLDER", "receives log.log and err.log", "log"),
    "strict": _switch("extension: exit code 1 if a rank, a node or a message does not get through"),
    "trace": _Flag(
        str, "FILE", "extension: write a timeline for chrome://tracing and ui.perfetto.dev"
    ),
    "multi-dimensional": _switch(
        "extension: let the congestion-aware network have several dimensions"
    ),
}


def parse_flags(words: Sequence[str]) -> Flags:
    """Read a command line: ``--flag value`` or ``--flag=value``, the last of each counts.

    Unknown flags and stray words are ignored.

    Raises
    ------
    UsageError
        If a required flag is missing, or a value is missing or wrong.
    """
    given = {name: flag.default for name, flag in _FLAGS.items()}
    following = iter(words)
    for word in following:
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name not in _FLAGS:
            continue
        text: str | None = value
        if not equals:
            text = "true" if _FLAGS[name].is_switch else next(following, None)
        if text is None:
            raise AstraSimUsageError(f"--{name}: must have a value, got none")
        given[name] = text
    missing = [
        f"--{name}" for name, flag in _FLAGS.items() if flag.is_required and given[name] is None
    ]
    if missing:
        raise AstraSimUsageError(f"{', '.join(missing)}: must be given")
    return Flags(**{name.replace("-", "_"): _parse(name, text) for name, text in given.items()})


def _parse(name: str, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return _FLAGS[name].parse(text)
    except AstraSimUsageError as error:
        raise AstraSimUsageError(f"--{name}: {error}") from error


def usage(command: str) -> str:
    """All flags, one per line."""
    lines = [f"usage: {command} --flag=value ... (or --flag value); * must be given"]
    for name, flag in _FLAGS.items():
        value = f"[={flag.value}]" if flag.is_switch else f"={flag.value}"
        default = f" (default {flag.default})" if flag.default else ""
        mark = "*" if flag.is_required else " "
        lines.append(f" {mark} {f'--{name}{value}':<37} {flag.explanation}{default}")
    return "\n".join(lines) + "\n"
