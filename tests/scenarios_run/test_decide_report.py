"""The decision with a report: the same page on the terminal, and the report beside it."""

import pytest
from command_output import error_of

from agents.decide import main as decide_main
from scenarios.decide import main

FLAGS = ("--network", "east_central_west", "--model", "llama2_7b", "--microbatches", "4")
FLAGS += ("--num-layers", "8")
QUICK = (*FLAGS, "--trainer", "ideal")


def test_the_page_is_the_same_and_the_report_holds_it(tmp_path, capsys):
    assert decide_main(QUICK) == 0
    page = capsys.readouterr().out
    path = tmp_path / "new" / "decision.html"

    assert main([*QUICK, "--report", str(path), "--figures", "svg"]) == 0

    assert capsys.readouterr().out == page
    text = path.read_text(encoding="utf-8")
    assert "Best plan of each kind" in text
    assert "python -m scenarios.decide --network east_central_west" in text
    beside = {one.name for one in path.parent.iterdir()} - {path.name}
    names = ("map", "gantt", "kinds", "links", "memory")
    assert beside == {f"decision_{name}.svg" for name in names}


def test_a_bound_plan_has_the_same_report_with_its_kinds(tmp_path, capsys):
    assert decide_main(FLAGS) == 0
    page = capsys.readouterr().out

    assert main([*FLAGS, "--report", str(tmp_path / "plan.html"), "--figures", "svg"]) == 0

    assert capsys.readouterr().out == page
    text = (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert "Best plan of each kind" in text
    assert "with Megatron-LM" in text
    beside = {one.name for one in tmp_path.iterdir()} - {"plan.html"}
    assert beside == {f"plan_{name}.svg" for name in ("map", "gantt", "kinds", "links", "memory")}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--report", "page.txt"), "report must end in .html"),
        (("--report", "page.html", "--stream"), "report must be left out with stream"),
        (("--figures", "gif"), "figures must be some of png, pdf, svg"),
    ],
)
def test_wrong_flags_are_one_line_and_code_2(flags, message, capsys):
    assert message in error_of(main, [*QUICK, *flags], capsys)


def test_a_report_that_cannot_be_written_is_code_2_and_the_answer_is_printed(tmp_path, capsys):
    (tmp_path / "page.html").mkdir()

    assert main([*QUICK, "--report", str(tmp_path / "page.html")]) == 2
    shown = capsys.readouterr()
    assert "page.html: cannot be written" in shown.err
    assert len(shown.err.splitlines()) == 1
    assert shown.out
