"""Texts below the flags of a help, no wider than the terminal."""

import re
import shutil
import textwrap

_COMMAND = re.compile(
    r" *(\$ )?([\w./-]+=\S+ )*(python -m|eastwest|\.venv/|make|nvidia-smi|pip)[ \w]"
)
_COLUMNS = re.compile(r"( *\S+(?: \S+)* {2,})\S")
_WORD = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"'])+""")
LEAST_WIDTH = 40
"""Columns below which lines are not broken any further."""


def terminal_width() -> int:
    """Columns of the terminal, or of COLUMNS; 80 where the output is neither."""
    return max(shutil.get_terminal_size((80, 24)).columns, LEAST_WIDTH)


def fit_text(text: str, width: int) -> str:
    r"""Break lines that are too wide: commands by a backslash, tables below their second column.

    Examples
    --------
    >>> print(fit_text("  python -m a --flag one --other two", 24))
      python -m a --flag \
          one --other two
    >>> print(fit_text("  a.csv   one row per world", 20))
      a.csv   one row
              per world
    """
    return "\n".join(_fit_line(line, width) for line in text.split("\n"))


def _fit_line(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    first = line[: len(line) - len(line.lstrip())]
    if _COMMAND.match(line):
        return " \\\n".join(_broken(_WORD.findall(line), width - 2, first))
    columns = _COLUMNS.match(line)
    if columns and len(columns[1]) <= width // 2:
        head = columns[1]
        pieces = _pieces(line[len(head) :], width - len(head))
        return head + f"\n{' ' * len(head)}".join(pieces)
    return "\n".join(first + piece for piece in _pieces(line.strip(), width - len(first)))


def _pieces(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _broken(words: list[str], width: int, indent: str) -> list[str]:
    lines = [indent + words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(f"{indent}    {word}")
    return lines
