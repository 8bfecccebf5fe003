"""Digests of what pictures are drawn from: ``python tests/picture_inputs.py`` records them again.

A picture whose data have changed since it was drawn is an old one. Of a figure of a report the data
are those in its page, of others the SVG, whose marks are equal for equal data.
"""

import csv
import hashlib
import json
import re
import shlex
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from des.figures.web import web_spec
from docs.figures import draw
from docs.site import gallery
from scenarios.entry.command import main as eastwest

RECORD = Path(__file__).with_name("golden") / "pictures.csv"
IMAGES = draw.IMAGES
SITES = draw.IMAGES.parents[1] / "README.md"
PLACED = 'eastwest simulate --placement "0*28,1*26,2*26"'
DECIDED = "eastwest decide --network sites.yaml --model llama2_13b --tokens-per-step 512Ki"
BY_COMMANDS = {
    f"{PLACED} --out runs/first": {"gantt": "iteration"},
    f"{PLACED} --schedule zb_h1 --out runs/zb": {"gantt": "iteration_zb_h1"},
    f"{DECIDED} --figures none --report runs/page.html": {
        "map": "decision_map",
        "kinds": "decision_kinds",
    },
}
"""Pictures of ``docs/images`` by the command that they are of, and the figure of its page."""
_SPECS = re.compile(r'<script id="figures" type="application/json">(.*?)</script>', re.DOTALL)


def digest(value: object) -> str:
    """Digest of plain values; the last digits of numbers, in which CPUs differ, do not count."""
    text = json.dumps(_rounded(value), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


def specs_of(page: Path) -> dict[str, object]:
    """Figures of a page, by name."""
    found = _SPECS.search(page.read_text("utf-8"))
    return json.loads(found[1]) if found else {}


def of_tables() -> dict[str, str]:
    """Digests of the pictures that ``docs.figures.draw`` makes of the tables of pages."""
    return {figure.name: digest(web_spec(figure)) for figure in (make() for make in draw.PICTURES)}


def of_commands(folder: Path, verb: str = "") -> dict[str, str]:
    """Digests of the pictures of README and pages that commands draw, those of one verb alone."""
    (world,) = re.findall(r"(?ms)^```yaml\n# sites.yaml\n(.*?)^```$", SITES.read_text("utf-8"))
    (folder / "sites.yaml").write_text(world, "utf-8")
    found = {}
    for command, names in BY_COMMANDS.items():
        if verb not in command:
            continue
        line = command.replace("sites.yaml", f"{folder}/sites.yaml").replace("runs/", f"{folder}/")
        with redirect_stdout(StringIO()):
            assert eastwest(shlex.split(line)[1:]) == 0, command
        out = Path(shlex.split(line)[-1])
        specs = specs_of(out if out.suffix else out / "report.html")
        found |= {picture: digest(specs[figure]) for figure, picture in names.items()}
    return found


def of_gallery(folder: Path) -> dict[str, str]:
    """Digests of all pictures of the gallery, which takes minutes."""
    gallery.gallery_page(folder)
    found = {}
    for picture in gallery.PICTURES:
        out = folder / Path(picture.place).relative_to("runs")
        path = (out.parent if out.suffix else out) / picture.file
        page = out if out.suffix == ".html" else out / "report.html"
        name = path.stem.removeprefix(f"{page.stem}_")
        specs = specs_of(page) if page.is_file() else {}
        name_here = f"gallery/{out.stem if out.suffix else out.name}/{picture.file}"
        content = path.read_bytes()
        found[name_here] = digest(specs.get(name, hashlib.sha256(content).hexdigest()))
    return found


def recorded() -> dict[str, tuple[str, str]]:
    """Digest of the data and of the file of each picture; the gallery's files are not kept."""
    rows = csv.DictReader(RECORD.read_text("utf-8").splitlines())
    return {row["picture"]: (row["data"], row["file"]) for row in rows}


def file_digest(picture: str) -> str:
    """Digest of a picture that is kept, empty for others."""
    path = IMAGES / f"{picture}.png"
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


def main() -> None:
    """Draw everything and write the record."""
    draw.main()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        found = of_tables() | of_commands(Path(one)) | of_gallery(Path(other))
    rows = [(name, data, file_digest(name)) for name, data in sorted(found.items())]
    with RECORD.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([("picture", "data", "file"), *rows])
    sys.stdout.write(f"written: {RECORD}\n")


if __name__ == "__main__":
    main()
