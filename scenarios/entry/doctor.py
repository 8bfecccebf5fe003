"""Say what is installed on this machine, and what each part enables."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from des.base.command import EXIT_CODES
from des.base.commands import command
from des.base.document import DOCUMENT
from des.base.extras import needed_extra
from des.base.flags import JsonFlag
from des.base.lazy import lazy_imports
from des.base.machine import cpu_name, usable_cores

with lazy_imports(__name__):
    from calibration.measuring import environment
    from des.base import jit
    from scenarios.rehearse import emulated_links

PROG = "python -m scenarios.entry.doctor"
_EPILOG = f"""\
Nothing is started or changed; what is missing is no fault of the base installation.

examples:
  {PROG}
      a line for each part: whether it is there, and what it enables
  {PROG} --json
      the same as one document, for scripts

exit codes: 0 always; {EXIT_CODES}
"""

_EXTRAS = {  # extra: package whose version is shown, what it enables
    "train": ("torch", "train, rehearse, learnt policies of autoscale, job-queue and cluster"),
    "exact": ("ortools", "planner cp_sat, schedule exact, pareto"),
    "explore": ("dash", "explore, and figures of reports that can be zoomed"),
    "ray": ("ray", "--ray: training and sweeps on a Ray cluster"),
    "ns3": ("ns3", "calibration and measurements by packets of ns-3"),
    "k8s": ("kubernetes", "Kubernetes: API servers, checks of manifests; metrics for Prometheus"),
    "hf": ("transformers", "models of Hugging Face beyond the built-in families"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(JsonFlag):
    """Flags of the check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A part of the installation or of the machine.

    Attributes
    ----------
    found
        Version or place; None: it is missing.
    otherwise
        How to get it, or what its absence means.
    """

    name: str
    found: str | None
    enables: str
    otherwise: str

    def line(self, width: int) -> str:
        """Line for people."""
        shown = f"{self.found}; for {self.enables}"
        if self.found is None:
            shown = f"missing; {self.enables}: {self.otherwise}"
        return f"{self.name:{width}}  {shown}\n"


@command(Config, PROG, __doc__, _EPILOG)
def main(_: Config) -> None:
    """Run the command on its settings."""
    parts = list(find_parts())
    width = max(len(part.name) for part in parts)
    sys.stdout.write("".join(part.line(width) for part in parts))
    DOCUMENT.add(
        parts=[{"name": one.name, "found": one.found, "enables": one.enables} for one in parts]
    )


def find_parts() -> Iterator[Component]:
    """Yield what is there and what is not."""
    python = f"{platform.python_version()}, {usable_cores()} cores, {cpu_name()}"
    yield Component(name="Python", found=python, enables="everything", otherwise="")
    yield Component(
        name="kernel cache",
        found=_cache_folder(),
        enables="kernels that are compiled once on this machine",
        otherwise="no folder can be written, so every start compiles",
    )
    for extra, (package, enables) in _EXTRAS.items():
        yield Component(
            name=f"[{extra}]",
            found=_installed(package),
            enables=enables,
            otherwise=needed_extra(extra),
        )
    yield Component(
        name="C++ compiler",
        found=_first_program("c++", "g++", "clang++"),
        enables="the extra [ns3] alone",
        otherwise="none in PATH",
    )
    yield Component(
        name="ASTRA-sim",
        found=_folder_of(environment.BINARIES_VARIABLE),
        enables="calibration by the original's programs; without it by our engine",
        otherwise=f"{environment.BINARIES_VARIABLE} names no folder",
    )
    yield Component(
        name="kubectl",
        found=_first_program("kubectl"),
        enables="applying what k8s manifests writes",
        otherwise="none in PATH",
    )
    found, reason = _emulation()
    yield Component(
        name="namespaces",
        found=found,
        enables="rehearse over emulated links",
        otherwise=reason,
    )


def _installed(package: str) -> str | None:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return None


def _first_program(*names: str) -> str | None:
    return next((path for name in names if (path := shutil.which(name))), None)


def _folder_of(variable: str) -> str | None:
    folder = os.environ.get(variable)
    return folder if folder and Path(folder).is_dir() else None


def _cache_folder() -> str | None:
    folder = jit.cache_base()
    if folder is None:
        return None
    num_kernels = sum(1 for _ in folder.glob("*/*/*.nbi"))
    return f"{folder}, {num_kernels} kernels"


def _emulation() -> tuple[str | None, str]:
    try:
        emulated_links.require_emulation()
    except ValueError as error:
        return None, str(error).removeprefix("rehearse: ")
    return "root, with network namespaces", ""


if __name__ == "__main__":
    raise SystemExit(main())
