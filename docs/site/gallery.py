"""Gallery of the site: pictures that our own commands draw while the site is built.

``python -m docs.site.gallery --out FOLDER`` draws them all, without the site.
"""

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from textwrap import indent

import yaml

from scenarios.entry.command import main as eastwest

_HEAD = "Gallery\n=======\n\n"
_ABOUT = """Each picture is drawn by the command below it, while these pages are made.
``--figures pdf`` writes it as PDF, for a paper; ``report.html`` in the same folder has it with
zoom. Measurements are small here, to be quick; their pages have those that figures are from.

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryPicture:
    """A picture: the command, the file in its folder, and what is seen."""

    title: str
    command: str
    file: str
    seen: str

    @property
    def place(self) -> str:
        """Folder or file that the command writes, of those in ``runs``."""
        return next(word for word in shlex.split(self.command) if word.startswith("runs/"))


def _read(path: Path) -> tuple[tuple[GalleryPicture, ...], dict[str, list[str]]]:
    table = yaml.safe_load(path.read_text("utf-8"))
    drawn = (
        GalleryPicture(command=row["command"], **picture)
        for row in table["drawn"]
        for picture in row["pictures"]
    )
    return tuple(drawn), table["longer"]


PICTURES, LONGER = _read(Path(__file__).with_name("gallery.yaml"))
"""Pictures of the gallery, those of one command next to each other; names of others by command."""


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
    longer = "".join(f"- ``{command}``: {', '.join(names)}\n" for command, names in LONGER.items())
    others = "Others\n------\n\nDrawn by commands that take longer or need a browser:\n\n"
    return "".join([_HEAD, _ABOUT, *_parts(folder), others, longer])


def _parts(folder: Path) -> Iterator[str]:
    run = set[str]()
    for picture in PICTURES:
        out = folder / Path(picture.place).relative_to("runs")
        if picture.command not in run:
            out.parent.mkdir(parents=True, exist_ok=True)
            words = shlex.split(picture.command.replace(picture.place, shlex.quote(str(out))))
            with redirect_stdout(StringIO()):
                code = eastwest(words[1:])
            if code != 0:
                raise RuntimeError(f"gallery: {picture.command}: exit code {code}")
            run.add(picture.command)
        path = (out.parent if out.suffix else out) / picture.file
        if not path.is_file():
            raise RuntimeError(f"gallery: {picture.command}: wrote no {picture.file}")
        yield _shown(picture, path.relative_to(folder.parent))


def _shown(picture: GalleryPicture, path: Path) -> str:
    line = "-" * len(picture.title)
    image = f".. image:: {path.as_posix()}\n   :alt: {picture.seen}\n"
    command = f".. code-block:: sh\n\n{indent(picture.command, '   ')}\n"
    return f"{picture.title}\n{line}\n\n{picture.seen}\n\n{image}\n{command}\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Draw all pictures and write their page beside them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/gallery"), help="folder")
    flags = parser.parse_args(argv)
    flags.out.mkdir(parents=True, exist_ok=True)
    (flags.out / "gallery.rst").write_text(gallery_page(flags.out / "pictures"), "utf-8")
    sys.stdout.write(f"gallery: {flags.out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
