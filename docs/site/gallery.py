"""Gallery of the site: pictures that our own commands draw while the site is built."""

import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from textwrap import indent

from scenarios.entry.command import main as eastwest

_HEAD = "Gallery\n=======\n\n"
_ABOUT = """Each picture is drawn by the command below it, while these pages are made.
``--figures pdf`` writes it as PDF, for a paper; ``report.html`` in the same folder has it with
zoom.

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryPicture:
    """A picture: the command, the file in its folder, and what is seen."""

    title: str
    command: str
    file: str
    seen: str


_WORLD = "--network east_central_west"
PICTURES = (
    GalleryPicture(
        title="One iteration",
        command="eastwest simulate --figures svg --out runs/iteration",
        file="gantt.svg",
        seen="Stages over time: forward and backward passes of 32 microbatches, and transfers "
        "between three data centres.",
    ),
    GalleryPicture(
        title="Sites and links",
        command="eastwest simulate --figures svg --out runs/iteration",
        file="map.svg",
        seen="Three sites, and the bandwidth of the links between them.",
    ),
    GalleryPicture(
        title="Busy links",
        command="eastwest simulate --figures svg --out runs/iteration",
        file="links.svg",
        seen="Share of the iteration in which each link carries bytes, by sender and receiver.",
    ),
    GalleryPicture(
        title="Memory over time",
        command="eastwest simulate --figures svg --out runs/iteration",
        file="memory.svg",
        seen="Memory of each domain during the iteration, under its capacity.",
    ),
    GalleryPicture(
        title="Without bubbles",
        command="eastwest simulate --schedule zb_h1 --figures svg --out runs/zb_h1",
        file="gantt.svg",
        seen="The same iteration under ZB-H1: weight gradients fill the end of the pipeline.",
    ),
    GalleryPicture(
        title="Kinds of plans",
        command=f"eastwest decide {_WORLD} --trainer ideal --figures svg "
        "--report runs/decision/page.html",
        file="page_kinds.svg",
        seen="The best plan of each kind, by the time of a step.",
    ),
    GalleryPicture(
        title="A run on moving links",
        command="eastwest run --epochs 6 --figures svg --out runs/moving",
        file="training_run.svg",
        seen="Time of each iteration while links move.",
    ),
)
"""Pictures of the gallery; those of one command stand next to each other."""


def without_pictures() -> str:
    """Return a page that says where pictures come from."""
    return f"{_HEAD}Pictures are drawn by ``make docs``.\n"


def gallery_page(folder: Path) -> str:
    """Run the commands in a folder, each once, and return the page of their pictures.

    Raises
    ------
    RuntimeError
        If a command does not end with exit code 0, or its picture is not there.
    """
    return "".join([_HEAD, _ABOUT, *_parts(folder)])


def _parts(folder: Path) -> Iterator[str]:
    run = set[str]()
    for picture in PICTURES:
        words = shlex.split(picture.command)[1:]
        flag = "--report" if "--report" in words else "--out"
        place = words.index(flag) + 1
        out = folder / Path(words[place]).relative_to("runs")
        if picture.command not in run:
            out.parent.mkdir(parents=True, exist_ok=True)
            with redirect_stdout(StringIO()):
                code = eastwest([*words[:place], str(out), *words[place + 1 :]])
            if code != 0:
                raise RuntimeError(f"gallery: {picture.command}: exit code {code}")
            run.add(picture.command)
        path = (out.parent if flag == "--report" else out) / picture.file
        if not path.is_file():
            raise RuntimeError(f"gallery: {picture.command}: wrote no {picture.file}")
        yield _shown(picture, path.relative_to(folder.parent))


def _shown(picture: GalleryPicture, path: Path) -> str:
    line = "-" * len(picture.title)
    image = f".. image:: {path.as_posix()}\n   :alt: {picture.seen}\n"
    command = f".. code-block:: sh\n\n{indent(picture.command, '   ')}\n"
    return f"{picture.title}\n{line}\n\n{picture.seen}\n\n{image}\n{command}\n"
