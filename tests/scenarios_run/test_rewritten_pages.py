"""Pages whose outputs are run again and written back."""

from command_output import error_of

from scenarios.run.page_outputs import main

LIST = "python -m scenarios.devices show --simulate dgx-h100 --format tree"
REFUSED = "python -m scenarios.devices place --simulate dgx-h100 --gpus 9"


def test_outputs_are_renewed_and_errors_stay_errors(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"Shown:\n```\n$ {LIST}\nold\n```\n```\n$ {REFUSED}\nerror: old\n```\nEnd.\n")

    assert main([str(page)]) == 0
    _, tree, _, error, end = page.read_text().split("```\n")
    assert tree.startswith(f"$ {LIST}\ndgx-h100: 8 GPUs")
    assert error.startswith(f"$ {REFUSED}\nerror: ")
    assert "old" not in page.read_text()
    assert end == "End.\n"


def test_an_output_that_becomes_an_error_is_refused(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"```\n$ {REFUSED}\n8 GPUs\n```\n")

    assert "must end with code 0, got error: " in error_of(main, [str(page)], capsys)
    assert "8 GPUs" in page.read_text()
