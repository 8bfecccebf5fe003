"""The site: every page of the documentation has a place, every link leads somewhere."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from browser import needs_axe, needs_chromium

from bench.browser import Tab, chromium
from docs.site.gallery import PICTURES

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
FETCHED = re.compile(
    r'<(?:script|img|source)[^>]* src="(https?:[^"]+)|<link[^>]* href="(https?:[^"]+)'
)

pytestmark = pytest.mark.skipif(
    find_spec("myst_parser") is None, reason="no Sphinx; pip install 'eastwest[docs]'"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages without the API and without pictures of the gallery."""
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "docs.site.build", "--pages", "--out", str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


def test_every_page_is_in_the_site_and_fetches_nothing(site):
    html = {path: path.read_text("utf-8") for path in site.rglob("*.html")}
    names = {path.relative_to(site).with_suffix("").as_posix() for path in html}

    assert not [page for page in PAGES if f"docs/{page.relative_to(ROOT / 'docs').with_suffix('')}"
                not in names]  # fmt: skip
    assert {"index", "README", "CHANGELOG", "CONTRIBUTING", "gallery", "search"} <= names
    assert [found for text in html.values() for found in FETCHED.findall(text)] == []


def test_formulas_are_mathml(site):
    text = (site / "docs/dev/bounds.html").read_text("utf-8")
    source = (ROOT / "docs/dev/bounds.md").read_text("utf-8")
    blocks = re.findall(r"(?m)^\$\$", source)

    assert text.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">') == len(
        blocks
    )
    assert "<mfrac>" in text
    assert "$" not in re.sub(r"(?s)<pre>.*?</pre>|<code.*?</code>|<script.*?</script>", "", text)


def faults_of(tab: Tab, page: Path) -> list[str]:
    """Broken rules of accessibility, complaints, requests and widths of a page, light and dark."""
    found = []
    for width, scheme in ((1280, "light"), (390, "dark")):
        tab.show(width=width, scheme=scheme)
        tab.open(page.as_uri(), "true")
        found += [f"{width} {scheme}: {each}" for each in tab.violations()]
        if tab.overflow() > 0:
            found.append(f"{width}: {tab.overflow()} pixels too wide")
    found += [*tab.complaints, *tab.requests]
    tab.complaints.clear()
    tab.requests.clear()
    return [f"{page.name}: {each}" for each in found]


@needs_chromium
@needs_axe
def test_the_front_page_is_readable_and_complains_of_nothing(site):
    with chromium() as tab:
        assert faults_of(tab, site / "index.html") == []


@pytest.mark.soak
@needs_chromium
@needs_axe
def test_no_page_of_the_whole_site_breaks_a_rule(tmp_path, capsys):
    """``make docs`` and ``SITE=build/site/html make soak ARGS=tests/house/test_site.py``."""
    built = os.environ.get("SITE")
    if built is None:
        words = [sys.executable, "-m", "docs.site.build", "--out", str(tmp_path)]
        subprocess.run(words, cwd=ROOT, check=True)
    pages = sorted(Path(built or tmp_path / "html").resolve().rglob("*.html"))
    with chromium() as tab:
        faults = [fault for page in pages for fault in faults_of(tab, page)]
    with capsys.disabled():
        print(f"{len(pages)} pages, {len(faults)} faults")  # noqa: T201

    assert pages
    assert faults == []


@pytest.mark.soak
def test_the_gallery_is_drawn_without_the_site(tmp_path):
    """The command of docs/compare.md."""
    words = [sys.executable, "-m", "docs.site.gallery", "--out", str(tmp_path)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)

    page = (tmp_path / "gallery.rst").read_text("utf-8")
    pictures = re.findall(r"(?m)^.. image:: (.+)$", page)
    assert len(pictures) == len(PICTURES)
    assert all((tmp_path / picture).is_file() for picture in pictures)


@pytest.mark.soak
@needs_chromium
def test_pictures_of_the_pages_are_taken_again(tmp_path):
    """The command of docs/compare.md, into another folder; the widths are those of the names."""
    words = [sys.executable, "-m", "docs.site.screenshots", "--out", str(tmp_path)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)

    kept = {path.name for path in (ROOT / "docs/images").glob("*_*0.png")}
    taken = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(taken) == kept
    for name, content in taken.items():
        assert int.from_bytes(content[16:20], "big") == int(Path(name).stem.rpartition("_")[2])
