"""Mutation check: which mutations a module has, and which of them tests kill."""

import subprocess

import pytest

from bench.mutations import (
    ROOT,
    main,
    mutated,
    mutations_of,
    outcome_of,
    own_and_other_tests,
)

DOUBLING = "SPARE = True\n\n\ndef double(number):\n    return number * 2\n"
TEST = "from des.room.doubling import double\n\n\ndef test():\n    assert double(3) == 6\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A room of a module with three mutations, and a test that two of them fail.

    It needs no plugin; those that are installed take longer to load than all else here.
    """
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    files = {
        "des/__init__.py": "",
        "des/room/__init__.py": "",
        "des/room/doubling.py": DOUBLING,
        "tests/des_room/test_doubling.py": TEST,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("a = b + c", ["(b - c)"]),
        ("a = b < c <= d", ["(b <= c <= d)"]),
        ("a = b and c", ["(b or c)"]),
        ("a = 0.5", ["(1.5)"]),
        ("a = b if c else d", ["(not c)"]),
        ("while a:\n    pass", ["(not a)"]),
        ('a: int | None = f"{b + 1}"', []),
        ("def a(b: 'c' = 1) -> d[2]: ...", ["(2)"]),
        ("@dataclass(frozen=True)\nclass A:\n    b = 1", ["(2)"]),
        ("é = 'é' * 3", ["('é' / 3)", "(4)"]),
    ],
)
def test_operators_constants_and_branches_change_but_no_types_and_texts(source, found):
    mutations = list(mutations_of("a.py", source))

    assert [one.after for one in mutations] == found
    for one in mutations:
        assert mutated(source, one) == source.replace(one.before, one.after, 1)


def test_a_mutation_of_another_source_is_refused():
    (one,) = mutations_of("a.py", "a = 1")

    with pytest.raises(ValueError, match=r"a\.py: byte 4 must begin '1'"):
        mutated("bc = 2", one)


def test_tests_of_the_own_room_are_run_before_others_are_collected():
    found = own_and_other_tests(ROOT, "des/world/files/a.py")
    own, others = ([one.name for one in tests] for tests in found)

    assert own == ["a.py", "des_world_files", "des_world"]
    assert "des_engine" in others
    assert not set(own) & set(others)
    assert not any(name.startswith("agents") for name in others)


def test_tests_of_another_room_kill_what_those_of_the_own_do_not(project):
    (project / "tests" / "des_room").rename(project / "tests" / "des_hall")
    subprocess.run(["git", "add", "."], cwd=project, check=True)
    *_, doubled = mutations_of("des/room/doubling.py", DOUBLING)

    killed = {"outcome": "killed", "by": "tests/des_hall/test_doubling.py::test"}
    assert outcome_of(doubled, project, 60.0) == killed


@pytest.mark.parametrize(
    ("source", "limit_s", "outcome"),
    [
        ("while 3 < 3:\n    pass\n", 0.5, {"outcome": "timed out", "by": ""}),
        (
            "import os\n\nif 3 < 3:\n    os.kill(os.getpid(), 9)\n",
            60.0,
            {"outcome": "killed", "by": "signal 9"},
        ),
    ],
)
def test_a_mutation_may_loop_for_ever_and_may_end_the_interpreter(
    project, source, limit_s, outcome
):
    (project / "des" / "room" / "doubling.py").write_text(source, "utf-8")
    (found,) = (one for one in mutations_of("des/room/doubling.py", source) if "<=" in one.after)

    assert outcome_of(found, project, limit_s) == outcome


def test_what_no_test_kills_survives_and_is_not_run_again(project, capsys):
    rows = project / "rows.jsonl"
    arguments = ["--count", "5", "--out", str(rows)]

    assert main(arguments, project) == 0
    first, kept = capsys.readouterr().out, rows.read_bytes()
    assert main(arguments, project) == 0

    assert "survived  des/room/doubling.py:1 True -> (False)" in first
    assert "killed    des/room/doubling.py:5 2 -> (3)" in first
    assert first.endswith("2 killed, 1 survived, 0 timed out of 5\n")
    assert (capsys.readouterr().out, rows.read_bytes()) == (first, kept)
    assert (project / "des" / "room" / "doubling.py").read_text("utf-8") == DOUBLING


def test_a_test_that_fails_anyway_kills_nothing(project):
    (project / "tests" / "des_room" / "test_doubling.py").write_text("assert 1 == 2", "utf-8")

    with pytest.raises(ValueError, match=r"test_doubling\.py: must pass without a mutation"):
        main(["--out", str(project / "rows.jsonl")], project)


def test_without_time_nothing_is_run(project, capsys):
    assert main(["--minutes", "0", "--out", str(project / "rows.jsonl")], project) == 0

    assert capsys.readouterr().out == "0 killed, 0 survived, 0 timed out of 40\n"
