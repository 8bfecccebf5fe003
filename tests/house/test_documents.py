"""Documents: names, links, figures and blocks of world files in them are right."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from documented import Shown
from spot_cases import write_trace

from des import read_topology
from des.figures.paper import image_bytes
from docs.figures import draw

ROOT = Path(__file__).resolve().parents[2]
WORLDS_PAGE = (ROOT / "docs/worlds.md").read_text("utf-8")
BLOCKS = re.findall(r"```yaml\n(?!# model)(.*?)```", WORLDS_PAGE, re.S)
(PROFILE,) = re.findall(r"```csv\n(.*?)```", WORLDS_PAGE, re.S)
FILE_KEYS = ("topology", "dynamics", "transport", "availability")
SECTIONS = [
    part
    for block in BLOCKS
    for part in re.split(r"(?m)^(?=dynamics:|transport:|availability:)", block)
]


@pytest.mark.parametrize("section", [section for section in SECTIONS if section.strip()])
def test_every_section_in_the_page_on_worlds_can_be_read(section, tmp_path):
    world = yaml.safe_load((ROOT / "des/worlds/east_central_west.yaml").read_text("utf-8"))
    rows = [
        f"0,{link.source},{link.target},{link.bandwidth_bytes_per_s},{link.latency_s}\n"
        for link in read_topology("east_central_west").links
    ]
    head = "time_s,source,target,bandwidth_bytes_per_s,latency_s\n"
    (tmp_path / "trace.csv").write_text(head + "".join(rows), "utf-8")
    (tmp_path / "my_profile.csv").write_text(PROFILE, "utf-8")
    write_trace(tmp_path / "west.json")
    path = tmp_path / "world.yaml"
    keys = yaml.safe_load(section)
    of_the_file = {key: keys.pop(key) for key in tuple(keys) if key in FILE_KEYS}
    world["topology"]["domains"][0] |= keys
    path.write_text(yaml.safe_dump(world | of_the_file), "utf-8")

    read, plain = read_topology(str(path)), read_topology("east_central_west")

    assert read != plain or of_the_file
    if "topology" in of_the_file:
        has_nodes = [domain.nodes is not None for domain in read.domains]
        assert has_nodes == [True] if "nodes:" in section else any(read.gates)
        return
    assert read.num_domains == 3
    assert (read.domains[0] != plain.domains[0]) == bool(keys)


def test_the_page_on_worlds_shows_every_kind_of_law():
    kinds = set(re.findall(r"kind: (\w+)", "".join(SECTIONS)))
    assert kinds == {"uniform", "ornstein_uhlenbeck", "markov", "replay", "product"}


PACKAGES = ("des", "agents", "astra_sim", "calibration", "scenarios", "bench", "tests")
FOLDERS = (*PACKAGES, "astra-sim", "docs", "notebooks", "requirements")
TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
PAGES = [*(ROOT / name for name in TOP), *sorted((ROOT / "docs").rglob("*.md"))]
PLACEHOLDERS = {"scenarios.X", "calibration.sqlite"}
"""Names with the form of a module that are none: of any command, and of a file in a run folder."""
FIGURES = ROOT / "docs/figures"


def module_exists(name: str) -> bool:
    """Whether a dotted name is a package, a module, or a name that its module mentions."""
    at = ROOT / "astra-sim" if name.startswith("astra_sim") else ROOT
    for position, part in enumerate(parts := name.split(".")):
        if (at / part).is_dir():
            at /= part
            continue
        module, rest = at / f"{part}.py", parts[position + 1 :]
        if not module.is_file():
            module, rest = at / "__init__.py", parts[position:]
        if not module.is_file():
            return False
        return not rest or re.search(rf"\b{rest[0]}\b", module.read_text("utf-8")) is not None
    return True


def named_in(page: Path) -> tuple[set[str], set[str]]:
    """Dotted names and paths of the repository in the code spans, and modules of commands."""
    text = page.read_text("utf-8")
    spans = " \n".join(re.findall(r"`([^`\n]+)`", text))
    dotted = re.findall(rf"(?<![\w/.-])(?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)+", spans)
    commands = re.findall(rf"python -m ((?:{'|'.join(PACKAGES)})(?:\.\w+)*)", text)
    paths = re.findall(rf"(?<![\w/.-])(?:{'|'.join(FOLDERS)})/[\w./-]*\w", spans)
    return {*dotted, *commands} - PLACEHOLDERS, set(paths)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_modules_and_paths_that_a_page_names_exist(page):
    modules, paths = named_in(page)

    assert not [name for name in sorted(modules) if not module_exists(name)]
    assert not [path for path in sorted(paths) if not (ROOT / path).exists()]


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"(?m)^#+ (.+)$", page.read_text("utf-8"))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_to_files_and_headings(page):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(target)

    assert not broken


PAGES_OF_DOCS = (
    *("what-it-is", "install", "tutorial", "decide", "worlds", "environments"),
    *("hi-ppo", "compare", "trust", "cluster", "extend", "reference"),
)


def test_there_are_twelve_pages_and_the_readme_leads_to_each():
    pages = {page.name for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "dev"}
    readme = (ROOT / "README.md").read_text("utf-8")

    assert pages == {f"{name}.md" for name in PAGES_OF_DOCS}
    assert [page for page in sorted(pages) if f"(docs/{page})" not in readme] == []


def test_every_page_of_developers_is_in_contributing():
    contributing = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    pages = sorted(page.name for page in (ROOT / "docs/dev").glob("*.md"))

    assert [page for page in pages if f"(docs/dev/{page})" not in contributing] == []


@pytest.mark.parametrize(
    ("pages", "most"),
    [
        ([ROOT / "README.md"], 900),
        (list((ROOT / "docs/dev").glob("*.md")), 14_000),
        ([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")], 50_000),
    ],
    ids=["README", "docs/dev", "all"],
)
def test_readme_and_pages_are_short(pages, most):
    assert sum(len(page.read_text("utf-8").split()) for page in pages) <= most


with (FIGURES / "index.csv").open(encoding="utf-8", newline="") as _index:
    RECORDED = [(row["file"], row["page"], row["command"]) for row in csv.DictReader(_index)]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def test_every_table_of_figures_is_listed_with_its_command():
    assert sorted(name for name, _, _ in RECORDED) == sorted(
        path.name for path in FIGURES.glob("*.csv") if path.name != "index.csv"
    )


def table_below(text: str, link: str) -> list[list[str]]:
    """Cells of the table right below the paragraph that links its file, without first column."""
    below = text[text.index(link) :].partition("\n\n")[2].partition("\n\n")[0]
    rows = below.splitlines()[2:] if below.startswith("|") else []
    return [row.split("|")[2:-1] for row in rows]


@pytest.mark.parametrize(("name", "page", "command"), RECORDED, ids=[row[0] for row in RECORDED])
def test_figures_and_their_command_stand_in_the_page(name, page, command):
    """A page that links a file shows figures of it alone; another one has all that it holds."""
    text, link = (ROOT / "docs" / page).read_text("utf-8"), f"(figures/{name})"
    assert Shown(page=page, line=command).normal in Shown(page=page, line=text).normal
    if name.startswith("bench_"):
        return  # written by `python -m bench --write` with all digits, the page has fewer
    with (FIGURES / name).open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    kept = {cell.lstrip("-") for row in rows for cell in row if NUMBER.fullmatch(cell)}
    if link not in text:
        assert kept <= numbers_in(text)
    elif table := table_below(text, link):
        shown = numbers_in(" ".join(cell for row in table for cell in row))
        assert shown <= kept
        assert shown
    else:
        assert any(
            "." in one and is_rounded(one, kept) for one in numbers_in(item_with(text, link))
        )


def numbers_in(text: str) -> set[str]:
    """Numbers of a text, without signs."""
    return {number.lstrip("-") for number in NUMBER.findall(text)}


def item_with(text: str, link: str) -> str:
    """The paragraph, or the item of a list, that links a file."""
    return next(item for item in re.split(r"\n\n|\n(?=- )", text) if link in item)


def is_rounded(number: str, kept: set[str]) -> bool:
    """Whether a number is one of those kept, to its own digits."""
    digits = len(number.partition(".")[2])
    return number in {f"{float(one):.{digits}f}" for one in kept}


@pytest.mark.soak
@pytest.mark.parametrize("make", draw.PICTURES, ids=lambda make: make.__name__)
def test_pictures_are_drawn_from_the_tables_as_they_are(make):
    """Bytes depend on matplotlib; `python -m docs.figures.draw` draws them again."""
    figure = make()
    assert (draw.IMAGES / f"{figure.name}.png").read_bytes() == image_bytes(figure, "png")


EXAMPLE = re.compile(r"(?s)```python\n((?:(?!```).)*)```\n```\n(.*?)```")
EXAMPLES = [
    pytest.param(*block, id=f"{page.name}-{place}")
    for page in PAGES
    for place, block in enumerate(EXAMPLE.findall(page.read_text("utf-8")))
]


@pytest.mark.parametrize(("program", "expected"), EXAMPLES)
def test_a_program_of_a_page_prints_what_stands_below_it(program, expected, tmp_path):
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == (expected, "")
