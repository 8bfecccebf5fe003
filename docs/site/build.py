"""Build the site: ``make docs`` makes all of it under ``build/site``, without a network.

``python -m docs.site.build --pages`` makes the pages alone: without the API and the gallery, whose
place a page without pictures takes. Warnings are errors: a link that leads nowhere ends the build.
"""

import argparse
import pkgutil
import re
import shutil
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from sphinx.cmd.build import build_main
from sphinx.ext.apidoc import main as write_api

from conftest import collect_ignore
from docs.site.gallery import gallery_page, without_pictures

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(__file__).resolve().parent
PACKAGES = {
    "des": "des",
    "agents": "agents",
    "calibration": "calibration",
    "scenarios": "scenarios",
    "astra_sim": "astra-sim/astra_sim",
}
"""Packages whose docstrings become pages, with their folders."""

_FOLDERS = ("docs", "examples", "notebooks", "des/worlds")
_PAGES = ("tests/golden/**/README.md", "scenarios/reproduce/data/**/README.md")
_ACCESSIBLE_TAGS = {
    '<p class="caption" role="heading"': '<p class="caption" role="heading" aria-level="2"',
    '<aside class="sidebar-drawer"': '<aside class="sidebar-drawer" aria-label="Site"',
    '<aside class="toc-drawer"': '<aside class="toc-drawer" aria-label="Page"',
    '<aside class="footnote-list brackets"': '<aside class="footnote-list brackets" role="none"',
    "<pre": '<pre tabindex="0"',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<div id="search-results"': '<h1>Search</h1>\n<div id="search-results"',
}
"""Tags of Sphinx and its theme, and the same with attributes for screen readers and keyboards."""

_SIGNATURE = re.compile(r"<dl>\n((?:<dd>.*</dd>\n)+)</dl>")
"""Parameters of a signature, a line each: a list of definitions without terms."""

_FOOTNOTE = re.compile(r'<aside class="footnote brackets" id="([^"]+)"')
"""A footnote: a landmark of the page, whose name no other one may have."""

_API = """API
===

From the docstrings. The names to begin with are those of the packages themselves:

{names}

.. toctree::
   :maxdepth: 1

   {packages}
"""


def _ignored(folder: str, names: list[str]) -> set[str]:
    """Caches, and what is neither a file nor a folder, such as the sockets of a notebook."""
    place = Path(folder)
    is_shown = {name: (place / name).is_file() or (place / name).is_dir() for name in names}
    return {name for name in names if name == "__pycache__" or not is_shown[name]}


def copy_sources(source: Path) -> None:
    """Copy all that pages show or link to, as it lies in the checkout."""
    for name in _FOLDERS:
        shutil.copytree(ROOT / name, source / name, ignore=_ignored)
    shutil.rmtree(source / "docs/site")
    pages = [path for pattern in _PAGES for path in ROOT.glob(pattern)]
    for path in [*(path for path in ROOT.iterdir() if path.is_file()), *pages]:
        target = source / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    shutil.copy2(SITE / "index.rst", source)


def names_of(package: str) -> str:
    """A line of the names that a package gives, each with a link to its home."""
    found = import_module(package)
    homes = {name: getattr(getattr(found, name), "__module__", None) for name in found.__all__}
    links = [f":py:obj:`~{home}.{name}`" if home else f"``{name}``" for name, home in homes.items()]
    return f"``{package}``\n   {', '.join(links) or 'none'}"


def import_all(package: str) -> None:
    """Import the modules of a package, before Sphinx adds annotations to their classes."""
    for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        path = Path(*module.name.split(".")).with_suffix(".py").as_posix()
        if path not in collect_ignore and not module.name.endswith(".__main__"):
            import_module(module.name)


def write_api_pages(source: Path) -> None:
    """Write a page for each package and subpackage, with all of its modules."""
    target = source / "api"
    for package, folder in PACKAGES.items():
        import_all(package)
        words = ["-q", "--no-toc", "--module-first", "--output-dir", str(target)]
        write_api([*words, str(ROOT / folder)])
    named = [each for each in PACKAGES if hasattr(import_module(each), "__all__")]
    names, packages = "\n".join(map(names_of, named)), "\n   ".join(PACKAGES)
    (target / "index.rst").write_text(_API.format(names=names, packages=packages), "utf-8")


def accessible_page(html: str) -> str:
    """Return a page of Sphinx with attributes for screen readers and keyboards.

    Examples
    --------
    >>> accessible_page("<dl>\\n<dd>a: int,</dd>\\n</dl><pre>x</pre>")
    '<div class="parameters">\\n<div>a: int,</div>\\n</div><pre tabindex="0">x</pre>'
    """
    for tag, accessible in _ACCESSIBLE_TAGS.items():
        html = html.replace(tag, accessible)
    html = _FOOTNOTE.sub(r'\g<0> aria-label="Footnote \g<1>"', html)
    return _SIGNATURE.sub(_parameters, html)


def _parameters(found: re.Match[str]) -> str:
    lines = found[1].replace("<dd>", "<div>").replace("</dd>", "</div>")
    return f'<div class="parameters">\n{lines}</div>'


def build(target: Path, *, pages_only: bool) -> int:
    """Build the site in a folder, whose earlier content goes; returns the exit code."""
    shutil.rmtree(target, ignore_errors=True)
    source = target / "source"
    copy_sources(source)
    (source / "api").mkdir()
    if pages_only:
        (source / "api/index.rst").write_text("API\n===\n", "utf-8")
    else:
        write_api_pages(source)
    gallery = without_pictures() if pages_only else gallery_page(source / "gallery")
    (source / "gallery.rst").write_text(gallery, "utf-8")
    words = ["--fail-on-warning", "--keep-going", "--quiet"]
    places = ["--conf-dir", str(SITE), "--doctree-dir", str(target / "doctrees")]
    code = build_main([*words, *places, str(source), str(target / "html")])
    for page in (target / "html").rglob("*.html"):
        text = page.read_text("utf-8")
        page.write_text(accessible_page(text), "utf-8")
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Build the site and say where it is."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build/site", help="folder of the site")
    parser.add_argument("--pages", action="store_true", help="without API and gallery")
    flags = parser.parse_args(argv)
    code = build(flags.out, pages_only=flags.pages)
    if code == 0:
        sys.stdout.write(f"site: {flags.out / 'html/index.html'}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
