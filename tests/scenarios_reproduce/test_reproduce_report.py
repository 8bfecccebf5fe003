"""Tables, verdicts and case files that all reproductions share, and the command that names them."""

import json
import math

import pandas as pd
import pytest

from des.base.command import UsageError
from des.figures.figure import Figure
from des.figures.marks import Line
from des.figures.palette import BLUE
from des.figures.panels import Axis, Panel
from scenarios.frame.report import Repetition
from scenarios.reproduce.cases import CaseForm, Count, PositiveNumber, existing_cases, read_cases
from scenarios.reproduce.command import COMMANDS
from scenarios.reproduce.command import main as reproduce_main
from scenarios.reproduce.report import Bound, Reproduction, markdown, publish

RUN = Repetition(configuration={"cases": "file"}, command="again")
MET = Bound.at_least("cells", 0.95, 0.9, shown=".1%")
FAILED = Bound.at_most("error", 0.08, 0.07, shown=".1%")
BEHIND_ITS_TARGET = Bound.at_most("error", 0.08, 0.07, recorded=0.085, shown=".1%")


class Row(CaseForm):
    """A row for these tests."""

    model: str
    step_time_s: PositiveNumber
    stages: tuple[Count, ...]


ROW = {"model": "1B", "step_time_s": 1, "stages": [2, 3]}


def figure():
    panel = Panel(x=Axis(), y=Axis(), marks=(Line(label="", x=(0, 1), y=(0, 1), colour=BLUE),))
    return Figure(name="picture", title="A line", seen="It rises.", panels=(panel,))


def reproduction(*bounds, frame=None, **further):
    if frame is None:
        frame = pd.DataFrame(
            {
                "cell": ["a|b", "[c]"],
                "published": [1.0, 2.0],
                "ours": [1 / 3, math.nan],
                "count": [1, 2],
                "right": [True, False],
            }
        )
    return Reproduction(
        title="A title",
        frame=frame,
        bounds=bounds,
        figure=figure(),
        notes=("A note.",),
        **further,
    )


def write_cases(folder, *, text=None, **changes):
    path = folder / "cases.json"
    content = {"source": "a paper", "note": "text", "rows": [ROW, ROW | changes]}
    path.write_text(json.dumps(content) if text is None else text, encoding="utf-8")
    return path


def test_bounds_are_met_at_the_limit_and_never_by_nan():
    assert Bound.at_least("share", 0.9, 0.9).met
    assert Bound.at_most("error", 0.1, 0.1).met
    assert not Bound.at_least("share", math.nextafter(0.9, 0.0), 0.9).met
    assert not Bound.at_most("error", math.nextafter(0.1, 1.0), 0.1).met
    assert not Bound.at_least("share", math.nan, 0.9).met
    assert not Bound.at_most("error", math.nan, 0.1).met


@pytest.mark.parametrize(
    ("measured", "verdict", "met"),
    [(0.06, "met", True), (0.08, "TARGET MISSED", True), (0.09, "FAILED", False)],
)
def test_a_figure_on_record_is_the_bound_where_the_target_is_missed(measured, verdict, met):
    above = Bound.at_most("error", measured, 0.07, recorded=0.085, shown=".1%")
    below = Bound.at_least("share", -measured, -0.07, recorded=-0.085, shown=".1%")

    assert above.met == below.met == met
    assert above.line.startswith(f"{verdict}: error: {measured:.1%}, target at most 7.0%, allowed")
    assert below.line.startswith(f"{verdict}: share")


def test_a_record_better_than_the_target_changes_nothing():
    assert Bound.at_most("error", 0.06, 0.07, recorded=0.05) == Bound.at_most("error", 0.06, 0.07)
    assert Bound.at_least("share", 0.6, 0.5, recorded=0.9) == Bound.at_least("share", 0.6, 0.5)


@pytest.mark.parametrize(
    ("bounds", "code"),
    [((MET,), 0), ((MET, FAILED), 1), ((FAILED,), 1), ((MET, BEHIND_ITS_TARGET), 0)],
)
def test_the_exit_code_is_one_if_any_bound_fails(bounds, code, tmp_path, capsys):
    assert publish(reproduction(*bounds), tmp_path, RUN) == code

    printed = capsys.readouterr().out
    for bound in bounds:
        assert bound.line in printed
    assert FAILED.line == "FAILED: error: 8.0%, allowed at most 7.0%"


def test_where_no_bound_applies_nothing_fails_and_it_is_said(tmp_path, capsys):
    assert publish(reproduction(unjudged=("x: 1 %",)), tmp_path, RUN) == 0
    lines = ["not judged: x: 1 %", "nothing was judged: no bound applies to these rows"]
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if "judged" in line] == lines
    assert (tmp_path / "table.md").read_text(encoding="utf-8").splitlines()[2:4] == [
        f"- {line}" for line in lines
    ]

    assert publish(reproduction(FAILED, unjudged=("x: 1 %",)), tmp_path, RUN) == 1
    printed = capsys.readouterr().out
    assert lines[0] in printed
    assert lines[1] not in printed


def test_the_columns_shown_are_on_screen_and_the_others_in_the_files(tmp_path, capsys):
    publish(reproduction(MET, shown=("count", "cell")), tmp_path, RUN)

    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["count", "cell"] for line in lines)
    assert any(line.split() == ["1", "a|b"] for line in lines)
    assert "3 further columns are in the files." in lines
    assert list(pd.read_csv(tmp_path / "table.csv")) == list(reproduction(MET).frame)
    assert "| cell | published | ours |" in (tmp_path / "table.md").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="shown must be columns of frame, got 'absent'"):
        reproduction(MET, shown=("cell", "absent"))


def test_files_are_written_with_the_same_bytes_each_time(tmp_path):
    folders = [tmp_path / "one" / "deep", tmp_path / "two"]
    for folder in folders:
        publish(reproduction(MET), folder, RUN)
    publish(reproduction(MET), folders[0], RUN)

    first, second = (
        {path.name: path.read_bytes() for path in sorted(folder.iterdir())} for folder in folders
    )
    assert list(first) == ["picture.png", "report.html", "table.csv", "table.md"]
    assert first == second
    assert first["picture.png"].startswith(b"\x89PNG")


def test_the_csv_keeps_all_digits_and_the_markdown_shows_four(tmp_path):
    publish(reproduction(MET), tmp_path, RUN)

    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "table.csv"), reproduction(MET).frame, check_exact=True
    )
    assert (tmp_path / "table.md").read_text(encoding="utf-8").splitlines() == [
        "# A title",
        "",
        "- met: cells: 95.0%, allowed at least 90.0%",
        "",
        "| cell | published | ours | count | right |",
        "| --- | ---: | ---: | ---: | --- |",
        "| a\\|b | 1 | 0.3333 | 1 | yes |",
        "| [c] | 2 | none | 2 | no |",
        "",
        "A note.",
    ]


def test_missing_counts_are_shown_as_none():
    frame = pd.DataFrame({"steps": pd.array([1, None], dtype="Int64")})

    assert markdown(reproduction(MET, frame=frame)).splitlines()[6:8] == ["| 1 |", "| none |"]


def test_the_console_shows_every_cell_however_narrow(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    long_name = "a-run-of-a-very-long-name/" * 6
    frame = pd.DataFrame({"run": [long_name], "measured_iteration_time_s": [1.25]})

    publish(reproduction(MET, frame=frame), tmp_path, RUN)

    assert any(long_name in line and "1.25" in line for line in capsys.readouterr().out.split("\n"))


def test_if_one_file_cannot_be_written_none_is(tmp_path):
    (tmp_path / "table.md").mkdir()

    with pytest.raises(ValueError, match=r"table\.md: cannot be written"):
        publish(reproduction(MET), tmp_path, RUN)

    assert [path.name for path in tmp_path.iterdir()] == ["table.md"]


def test_a_reproduction_of_nothing_is_refused():
    with pytest.raises(ValueError, match="frame must not be empty"):
        reproduction(MET, frame=pd.DataFrame({"a": []}))
    with pytest.raises(ValueError, match="bounds must not be empty"):
        reproduction()


def test_cases_are_read_as_they_are_and_may_hold_further_texts(tmp_path):
    path = write_cases(tmp_path, remark="from table 2")

    cases = read_cases(path, Row, path)

    assert cases.source == "a paper"
    assert [(row.model, row.step_time_s, row.stages) for row in cases.rows] == [
        ("1B", 1.0, (2, 3)),
        ("1B", 1.0, (2, 3)),
    ]


def test_a_file_may_hold_anything_beside_its_rows(tmp_path):
    content = {"version": 2, "tables": [5, 9], "of": {"year": 2025}, "seen": None}
    text = json.dumps({"source": "a paper", "rows": [ROW]} | content)

    path = write_cases(tmp_path, text=text)

    assert [row.model for row in read_cases(path, Row, path).rows] == ["1B"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step_time_s": "0.1"}, r"rows\[1\]\.step_time_s: .*valid number, got '0\.1'"),
        ({"step_time_s": -1.0}, r"rows\[1\]\.step_time_s: .*greater than 0, got -1\.0"),
        ({"step_time_s": math.inf}, r"rows\[1\]\.step_time_s: .*finite number"),
        ({"step_time_s": True}, r"rows\[1\]\.step_time_s: .*valid number, got True"),
        ({"stages": [1, 2.5]}, r"rows\[1\]\.stages\[1\]: .*valid integer, got 2\.5"),
        ({"model": None}, r"rows\[1\]\.model: .*valid string, got None"),
        ({"step_tim_s": 2.0}, r"rows\[1\]: step_tim_s must be text or .*step_time_s.*got 2\.0"),
    ],
)
def test_a_wrong_field_is_named_with_file_and_row(changes, message, tmp_path):
    path = write_cases(tmp_path, **changes)

    with pytest.raises(ValueError, match=rf"^{path}: {message}"):
        read_cases(path, Row, path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"source": "a",\n"rows": [}', "not readable as JSON in line 2"),
        ('{"source": "a", "source": "b", "rows": []}', "key 'source' must be given once"),
        ('{"source": "a", "rows": []}', "rows: .*at least 1 item"),
        ('{"source": "a"}', "rows: must be given"),
        ('{"source": "a", "rows": [{"model": "1B", "stages": []}]}', r"step_time_s: must be given"),
        ('{"source": "a", "rows": [7]}', r"rows\[0\]: "),
        ("[1]", "file: "),
    ],
)
def test_a_file_that_is_no_case_file_is_refused(text, message, tmp_path):
    path = write_cases(tmp_path, text=text)

    with pytest.raises(ValueError, match=rf"^{path}: .*{message}"):
        read_cases(path, Row, path)


def test_an_absent_file_or_folder_is_named_with_the_flag_that_gives_one(tmp_path):
    with pytest.raises(UsageError, match=r"cases: must be a file .*, got .*no.*give --cases FILE"):
        read_cases(tmp_path / "no.json", Row, tmp_path / "no.json")
    with pytest.raises(UsageError, match=r"cases: must be a file"):
        existing_cases(tmp_path)
    with pytest.raises(UsageError, match=r"cases: must be a folder .*give --cases FOLDER"):
        existing_cases(write_cases(tmp_path), kind="folder")
    assert existing_cases(tmp_path, kind="folder") == tmp_path


def test_the_command_lists_its_tables_and_refuses_others(capsys):
    with pytest.raises(SystemExit) as stop:
        reproduce_main(["--help"])
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert all(name in printed and about in printed for name, about in COMMANDS.items())
    assert "for sailor it is a folder" in printed

    assert reproduce_main([]) == 2
    assert "COMMAND must be one of" in capsys.readouterr().err
    assert reproduce_main(["dilocco"]) == 2
    assert "did you mean 'diloco'?" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_table_has_help_and_refuses_absent_cases(name, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        reproduce_main([name, "--help"])
    assert stop.value.code == 0
    assert "--cases" in capsys.readouterr().out

    out = [] if name == "serving" else ["--out", str(tmp_path / "out")]  # it writes no files
    code = reproduce_main([name, "--cases", str(tmp_path / "no"), *out])

    assert code == 2
    assert "cases: must be a" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
