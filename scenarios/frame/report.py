"""The report of a run as a value: question, answer, tables, figures and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from des.base.lazy import lazy_imports
from scenarios.frame.run_folder import package_versions, source_revision

with lazy_imports(__name__):
    from agents.answer.sections import Section
    from des.figures.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """Settings of a run by name, and the command that repeats it."""

    command: str
    configuration: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """A table of texts; ``best`` holds cells that stand out, by column and text."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, str]] = frozenset()
    notes: tuple[str, ...] = ()


def versions() -> dict[str, str]:
    """Return versions of packages and of the source that results depend on."""
    found = {name: version or "not installed" for name, version in package_versions().items()}
    return found | {"source revision": source_revision() or "not a checkout"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Content of a report, as plain text, numbers and figures; nothing in it is HTML.

    Attributes
    ----------
    first
        Figures on the first screen: the map of the sites and the Gantt chart of the chosen plan.
    repeat
        How the run is repeated.
    """

    title: str
    answer: str
    repeat: Repetition
    question: str = ""
    first: tuple[Figure, ...] = ()
    tables: tuple[PageTable, ...] = ()
    sections: tuple[Section, ...] = ()
    figures: tuple[Figure, ...] = ()
    versions: Mapping[str, str] = field(default_factory=versions)
    fidelity: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    targets: str | None = None

    def __post_init__(self) -> None:
        names = [figure.name for figure in self.all_figures()]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"report {self.title}: figures must have own names, got {twice[0]!r}")

    def all_figures(self) -> Iterator[Figure]:
        """Yield the figures in the order of the page."""
        yield from self.first
        yield from self.figures
