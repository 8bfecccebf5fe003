"""Server of a subcommand: read from files, from this machine, or a named kind."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from des.base.command import UsageError
from des.base.flags import option
from des.base.lazy import lazy_imports
from des.devices.presets import KIND_NAMES, simulated
from des.devices.server import Server

with lazy_imports(__name__):
    from des.devices.files import nvml, server_files
    from des.devices.files.link_matrix import LinkMatrix
    from scenarios.devices import here


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFlags:
    """Settings of the one server that a subcommand is about; subcommands inherit the flags."""

    file: tuple[Path, ...] = option(
        (),
        "files about one server, the kind found from the text: nvidia-smi topo -m (or -mp), "
        "nvlink --status, -L, rocm-smi --showtopo, numactl --hardware, lscpu; or a folder: the "
        "root of a sysfs tree",
        default_text="none",
    )
    simulate: str | None = option(None, f"kind of server: {', '.join(KIND_NAMES)}")
    here: bool = option(
        False, "run those programs on this machine, as far as they are installed, and read them"
    )
    nvml: bool = option(False, "read the GPUs of this machine by NVML")
    strict: bool = option(
        False,
        "refuse a matrix whose header lost its tabs; by default the labels of its rows are taken",
    )


def server_of(flags: ServerFlags) -> Server:
    """Return the server that the flags name, of whole GPUs; errors as those of `read_source`."""
    return read_source(flags)[0].require_whole_gpus()


def list_changed_flags(flags: ServerFlags, names: Iterable[str]) -> list[str]:
    """Return flags among some, by their fields, that have another value than by default."""
    defaults = {field.name: field.default for field in fields(flags)}
    given = (name for name in names if getattr(flags, name) != defaults[name])
    return [f"--{name.replace('_', '-')}" for name in given]


def read_source(flags: ServerFlags) -> "tuple[Server, LinkMatrix | None]":
    """Return the server that the flags name, and the matrix that it was read from, if any.

    Raises
    ------
    UsageError
        If not exactly one of ``--file``, ``--simulate``, ``--here`` and ``--nvml`` is given.
    ValueError
        If a file is damaged, or the kind is not known.
    """
    given = list_changed_flags(flags, ("file", "simulate", "here", "nvml"))
    if len(given) != 1:
        raise UsageError(
            "exactly one of --file, --simulate, --here and --nvml must be given, "
            f"got {' and '.join(given) or 'none'}"
        )
    if flags.simulate is not None:
        return simulated(flags.simulate), None
    if flags.nvml:
        return nvml.read_machine(), None
    read = (
        here.read_here(strict=flags.strict)
        if flags.here
        else server_files.read_files(flags.file, strict=flags.strict)
    )
    return read.server, read.matrix
