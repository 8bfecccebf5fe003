"""The site: every page of the documentation has a place, every link leads somewhere."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

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
    text = (site / "docs/bounds.html").read_text("utf-8")
    source = (ROOT / "docs/bounds.md").read_text("utf-8")
    blocks = re.findall(r"(?m)^\$\$", source)

    assert text.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">') == len(
        blocks
    )
    assert "<mfrac>" in text
    assert "$" not in re.sub(r"(?s)<pre>.*?</pre>|<code.*?</code>|<script.*?</script>", "", text)
