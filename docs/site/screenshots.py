"""Pictures of a report and of the explorer: ``python -m docs.site.screenshots`` takes them again.

Headless Chromium shows the pages that our own commands make, 1280 pixels wide in light colours and
390 in dark ones; the pictures are those of ``docs/images``.
"""

import argparse
import io
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from bench.browser import CHROMIUM, Tab, chromium
from bench.explorer import READY
from scenarios.entry.command import main as eastwest
from scenarios.explore.app import Explorer, explorer_app
from scenarios.explore.command import Served, free_port
from scenarios.explore.scene import Settings

IMAGES = Path(__file__).resolve().parents[1] / "images"
VIEWS = ((1280, 900, "light"), (390, 844, "dark"))
"""Widths, heights and colour schemes of the windows."""

_REPORT_READY = "document.documentElement.dataset.drawnMs"
_EXPLORER_READY = f"{READY} && document.getElementById('fact-bound').textContent"


def take(tab: Tab, url: str, ready: str, name: str, folder: Path) -> list[Path]:
    """Take a page's picture in all views; returns the files."""
    taken = []
    for width, height, scheme in VIEWS:
        tab.show(width=width, height=height, scheme=scheme)
        tab.open(url, ready)
        tab.run("document.fonts.ready.then(() => 0)")
        taken.append(folder / f"{name}_{width}.png")
        tab.picture(taken[-1])
    return taken


def report_pictures(tab: Tab, folder: Path) -> list[Path]:
    """Take the pictures of the report of ``eastwest simulate``."""
    with tempfile.TemporaryDirectory() as out, redirect_stdout(io.StringIO()):
        code = eastwest(["simulate", "--out", out])
        if code:
            raise ValueError(f"screenshots: simulate must end with 0, got {code}")
        return take(tab, (Path(out) / "report.html").as_uri(), _REPORT_READY, "report", folder)


def explorer_pictures(tab: Tab, folder: Path) -> list[Path]:
    """Take the pictures of the explorer at its start."""
    app = explorer_app(Explorer(settings=Settings(), runs=Path("runs")))
    with Served(app.server, free_port(0)) as served:
        return take(tab, served.url, _EXPLORER_READY, "explorer", folder)


def main(argv: Sequence[str] | None = None) -> int:
    """Take all pictures and print their paths."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder of the pictures")
    flags = parser.parse_args(argv)
    if CHROMIUM is None:
        parser.error("needs chromium; for example: apt-get install chromium")
    flags.out.mkdir(parents=True, exist_ok=True)
    with chromium() as tab:
        for path in (*report_pictures(tab, flags.out), *explorer_pictures(tab, flags.out)):
            sys.stdout.write(f"picture: {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
