"""The command on the page of an iteration is taken again, with a job of a file or of tokens."""

import shlex

import pytest

from des.base.flags import parse_given
from scenarios.frame.outputs import repeat_command
from scenarios.iteration.iteration_config import PROG, Config
from scenarios.iteration.trained_plan import as_given, with_job

JOB = (
    '{"model": "llama2_7b", "num_layers": 16, "microbatches": 8, "microbatch_size": 2, '
    '"sequence_length": 1024}'
)


def configured(argv):
    """Configuration of a command line, its job filled in."""
    config, given = parse_given(Config, argv, prog=PROG, description="", epilog="")
    return with_job(config, given)[0]


@pytest.mark.parametrize("flags", [["--job"], ["--tokens-per-step", "64Ki"],
                                   ["--tokens-per-step", "64Ki", "--job"]])  # fmt: skip
def test_a_repeated_command_names_the_job_once_and_is_the_same(flags, tmp_path):
    path = tmp_path / "a.job.json"
    path.write_text(JOB, encoding="utf-8")
    config = configured([*flags, str(path)] if flags[-1] == "--job" else flags)
    command = repeat_command(PROG, as_given(config))

    assert configured(shlex.split(command.removeprefix(PROG))) == config
    assert ("--model" in command) is False
