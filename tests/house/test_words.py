"""Words of the project: docstrings name their subject, and phrases that stumble do not return."""

import ast
import re
import subprocess
from pathlib import Path

import pytest
from source_tree import ROOT, nodes_of_file, parsed

PACKAGES = ("des", "astra-sim/astra_sim", "calibration", "agents", "scenarios", "bench")
OPENINGS = frozenset({"What", "Who", "How", "Which", "Where", "When", "Why"})
FRAGMENTS = frozenset(
    {"Of", "For", "From", "On", "So", "That", "Those", "It", "They", "Also", "With"}
)
"""First words of docstrings that leave their noun out."""

PHRASES = (
    r"unless told",
    r"asked \(beyond\)",
    r"so many",
    r"anew",
    r"anyhow",
    r"whoever",
    r"nobody",
    r"somebody",
    r"gone on",
    r"give or take",
    r"hang together",
    r"goes on and on",
    r"come to no end",
    r"came to the end",
    r"(?:an?|one) (?:row|stage|column|panel|NPU) an? [a-z`]+",
)
"""Words and phrases, as regular expressions, that have a plain form; the glossary has the terms."""

PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)
TEXTS = ("*.py", "*.md", "*.ipynb", "*.yaml", "*.toml")


def docstrings(path: Path) -> list[tuple[int, str]]:
    """Docstrings of a module, also those below constants, with their lines."""
    return [
        (node.lineno, node.value.value)
        for node in nodes_of_file(path)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]


def clauses(path: Path) -> list[str]:
    """Docstrings that open with a relative clause or a fragment in place of a noun."""
    return [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for line, text in docstrings(path)
        if text.split(maxsplit=1)[:1] and text.split(maxsplit=1)[0] in OPENINGS | FRAGMENTS
    ]


def modules(package: str) -> list[Path]:
    """Modules of a package."""
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", [*PACKAGES, "tests"])
def test_modules_open_with_a_noun_or_an_imperative(package):
    opened = [(path, ast.get_docstring(parsed(path))) for path in modules(package)]

    assert [path for path, text in opened if text and text.split(maxsplit=1)[0] in OPENINGS] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_open_with_a_noun_or_an_imperative(package):
    assert [clause for path in modules(package) for clause in clauses(path)] == []


def test_phrases_that_stumble_do_not_return():
    if not (ROOT / ".git").exists():
        pytest.skip("needs the repository")
    names = subprocess.run(
        ["git", "ls-files", "-z", *TEXTS], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    found = [
        f"{name}: {phrase.group()}"
        for name in filter(None, names)
        if (ROOT / name).is_file() and ROOT / name != Path(__file__)
        for phrase in PHRASE.finditer((ROOT / name).read_text("utf-8"))
    ]

    assert found == []
