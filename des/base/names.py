"""Names and messages as people see them: in one printable line, and not too long."""

import re

MOST_NAME_CHARACTERS = 200
MOST_MESSAGE_CHARACTERS = 2000
_SECRET = re.compile(r"(?<=://)\S*(?=@)|(?<=[?&]password=)[^\s&]+")
"""User and password of an address."""


def printable(text: str) -> str:
    r"""Return a text whose characters that act on a terminal are written out.

    Examples
    --------
    >>> printable("east\x1b[31m")
    'east\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def one_line(message: str, most: int = MOST_MESSAGE_CHARACTERS) -> str:
    """Return a message in one printable line, without its middle if it is long, and no password.

    Examples
    --------
    >>> one_line("redis://:hush@10.0.0.1/0: cannot be used")
    'redis://***@10.0.0.1/0: cannot be used'
    >>> one_line("bandwidth\\nmust be positive")
    'bandwidth must be positive'
    >>> one_line("a" * 100, most=20)
    'aaaaaaaaa ... aaaaaa'
    """
    if len(message) > 4 * most:  # for what a whole file was put into
        message = f"{message[: 2 * most]} {message[-2 * most :]}"
    line = printable(_SECRET.sub("***", " ".join(message.split())))
    if len(line) <= most:
        return line
    tail = (most - 5) * 2 // 5
    return f"{line[: most - 5 - tail]} ... {line[-tail:]}"


def require_name(owner: str, field: str, name: str) -> None:
    """Refuse a name that cannot be shown: empty, too long, or with characters that act.

    Raises
    ------
    ValueError
        Naming the owner and the field.
    """
    if (
        not isinstance(name, str)
        or not 0 < len(name) <= MOST_NAME_CHARACTERS
        or not name.isprintable()
    ):
        raise ValueError(
            f"{owner}: {field} must be 1 to {MOST_NAME_CHARACTERS} printable characters, "
            f"got {one_line(repr(name), 100)}"
        )


def counted(number: int, noun: str) -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> counted(1, "seed"), counted(3, "seed")
    ('1 seed', '3 seeds')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
