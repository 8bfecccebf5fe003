"""Words of the command line that are chosen, errors in one line, and commands within commands."""

from dataclasses import dataclass
from typing import Literal

import pytest
from parsed_flags import parsed, written

from des.base.checks import require_count
from des.base.command import UsageError, exit_code_of
from des.base.flags import option, parse, parse_command, required


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (("--steps", "x"), "error: argument --steps: must be an integer, got 'x'\n"),
        (("--world", "w", "--steps", "0"), "error: config: steps must be at least 1, got 0\n"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(capsys, argv, line):
    """The parser's errors and the configuration's own reach the user the same way."""
    assert exit_code_of(lambda: parsed(*argv) and None) == 2
    assert capsys.readouterr() == ("", line)


def test_a_file_error_is_one_line_with_the_name_of_the_file(capsys, tmp_path):
    """An OSError is the user's disk, not our bug."""
    path = tmp_path / "absent"

    assert exit_code_of(lambda: len(path.read_bytes())) == 2
    assert capsys.readouterr().err == f"error: {path}: No such file or directory\n"


def test_a_long_message_stays_on_one_line(capsys):
    """Line breaks in a message do not reach the terminal."""

    def body() -> None:
        raise ValueError("first\n  second")

    assert exit_code_of(body) == 2
    assert capsys.readouterr().err == "error: first second\n"


def test_success_and_own_codes_pass_through():
    """Nothing returned is success."""
    assert exit_code_of(lambda: None) == 0
    assert exit_code_of(lambda: 3) == 3


def test_a_bug_keeps_its_traceback():
    """Only bad input is caught."""
    with pytest.raises(ZeroDivisionError):
        exit_code_of(lambda: 1 // 0)


@dataclass(frozen=True, kw_only=True)
class Words:
    """Fields that only some words, some numbers or a place are allowed for."""

    key: str = required("key of a run", is_positional=True)
    level: Literal["low", "high"] | None = option(None, "height", default_text="as it is")
    parts: tuple[Literal["a", "b"], ...] = option(("a",), "parts")
    count: int = option(1, "how many", check=require_count)


def words(*argv: str) -> Words:
    return parse(Words, argv, prog="demo", description="A demonstration.", epilog="examples:\n  x")


def test_words_are_chosen_and_a_place_needs_no_flag():
    """Before or after the flags."""
    expected = Words(key="k", level="high", parts=("b", "a"), count=3)

    assert words("k", "--level", "high", "--parts", "b, a", "--count", "3") == expected
    assert words("--level=high", "--parts=b,a", "--count=3", "k") == expected
    assert words("k", "--level", "none") == Words(key="k")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["k", "--level", "hihg"], "argument --level: must be one of low, high, or none, got 'hihg'"
         "; did you mean 'high'?"),
        (["k", "--parts", "a,c"], "argument --parts: must be a list, each element one of a, b"),
        (["k", "--count", "0"], "argument --count: must be a whole number from 1 to 1000000000"),
        (["k", "--count", "1", "2"],
         "demo: unknown argument '2'; allowed are KEY, --level, --parts"),
        (["k", "l"], "demo: unknown argument 'l'; allowed are KEY, --level, --parts"),
        (["--count", "--parts", "a"], "argument --count: expected one argument, got none"),
        (["k", "--count", "-1", "--parts"], "argument --parts: expected one argument, got none"),
        ([], "demo: key is required (KEY)"),
    ],
)  # fmt: skip
def test_a_wrong_word_is_named_with_the_nearest_right_one(argv, message):
    with pytest.raises(UsageError) as caught:
        words(*argv)

    assert str(caught.value).startswith(message)


def test_checks_hold_for_the_file_as_for_flags(tmp_path):
    path = written(tmp_path / "a.yaml", "count: 0\n")

    with pytest.raises(UsageError, match=r"a\.yaml: count must be a whole number from 1 to"):
        words("k", "--config", path)


def test_help_ends_with_the_examples(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        words("--help")

    shown = capsys.readouterr().out
    assert shown.endswith("\n\nexamples:\n  x\n")
    assert "--level {low,high}" in shown
    assert "(default: as it is)" in " ".join(shown.split())


def test_a_command_is_taken_off_the_command_line(capsys):
    """The flags after it are those of the command; before it there is only --help."""
    commands = {"run": "does it", "show": "says it"}

    def taken(*argv: str) -> tuple[str, list[str]]:
        return parse_command(commands, argv, prog="demo", description="A demonstration.")

    assert taken("run", "--help", "x") == ("run", ["--help", "x"])
    for argv, message in (
        ((), "demo: COMMAND must be one of run, show, got none"),
        (("rum",), "argument COMMAND: must be one of run, show, got 'rum'; did you mean 'run'?"),
        (("--quick",), "demo: unknown argument '--quick'; "),
    ):
        with pytest.raises(UsageError) as caught:
            taken(*argv)
        assert str(caught.value).startswith(message)
    with pytest.raises(SystemExit, match=r"^0$"):
        taken("--help")
    assert "commands:\n  run   does it\n  show  says it\n" in capsys.readouterr().out
