"""The command line and the scenario file: what is allowed, what wins, what is said of bad input."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from parsed_flags import Config, parsed, written

from des.base.command import UsageError
from des.base.flags import from_dict, parse, to_dict

FINITE = st.floats(allow_nan=False, allow_infinity=False)
# The characters that any UTF-8 file can hold; YAML refuses control characters.
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co"]))
CONFIGS = st.builds(
    Config,
    world=TEXT,
    steps=st.integers(min_value=1),
    learning_rate=FINITE,
    quick=st.booleans(),
    tensorboard=st.booleans(),
    folder=TEXT.filter(lambda text: "\x00" not in text).map(Path),
    limit_s=st.none() | FINITE,
    seeds=st.lists(st.integers()).map(tuple),
)


def test_every_kind_of_field_is_a_flag():
    """Each flag sets its own field to the value that its text spells."""
    config = parsed(
        *("--world", "east_west", "--steps", "1_000_000", "--learning-rate", "1e-5"),
        *("--quick", "--no-tensorboard", "--folder", "/tmp/a", "--limit-s", "2"),
        *("--seeds", "3,1_0,-4"),
    )

    assert config == Config(
        world="east_west",
        steps=1_000_000,
        learning_rate=1e-5,
        quick=True,
        tensorboard=False,
        folder=Path("/tmp/a"),
        limit_s=2.0,
        seeds=(3, 10, -4),
    )


def test_absent_flags_leave_the_defaults():
    """Nothing but the required field is needed."""
    assert parsed("--world", "w") == Config(world="w")


def test_none_and_the_empty_list_can_be_written():
    """``none`` clears an optional field and an empty text is a tuple without elements."""
    config = parsed("--world", "w", "--limit-s", "none", "--seeds", "")

    assert (config.limit_s, config.seeds) == (None, ())


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_flags_win_over_the_file_and_the_file_over_the_defaults(tmp_path, suffix):
    """One field is set by both, one by the file only, one by neither."""
    content = {"world": "w", "steps": 7, "quick": True, "limit_s": 1, "seeds": [5]}
    path = written(tmp_path / f"scenario.{suffix}", json.dumps(content))

    config = parsed("--config", path, "--steps", "8", "--no-quick")

    assert config == Config(world="w", steps=8, quick=False, limit_s=1.0, seeds=(5,))


def test_a_number_with_an_exponent_is_a_number_in_yaml(tmp_path):
    """PyYAML alone would read 3e-4 as text."""
    path = written(tmp_path / "a.yaml", "world: w\nsteps: 1_000\nlearning_rate: 3e-4\n")

    assert parsed("--config", path) == Config(world="w", steps=1000, learning_rate=3e-4)


@given(config=CONFIGS)
def test_a_configuration_survives_plain_values_json_and_yaml(config):
    """from_dict inverts to_dict, also through the text of both formats."""
    plain = to_dict(config)
    through_json = json.loads(json.dumps(plain))
    through_yaml = yaml.safe_load(yaml.safe_dump(plain, allow_unicode=True))

    assert from_dict(Config, plain, source="memory") == config
    assert from_dict(Config, through_json, source="json") == config
    assert from_dict(Config, through_yaml, source="yaml") == config


@given(config=CONFIGS)
def test_the_file_of_a_configuration_parses_to_it(config, tmp_path_factory):
    """What a run records is a scenario file, wrapped in the run's record or not."""
    folder = tmp_path_factory.mktemp("config")
    plain = to_dict(config)
    bare = written(folder / "bare.json", json.dumps(plain))
    record = written(folder / "config.json", json.dumps({"config": plain, "versions": {}}))

    assert parsed("--config", bare) == config
    assert parsed("--config", record) == config


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--steps", "many"], "argument --steps: must be an integer, got 'many'"),
        (["--steps", "1.5"], "argument --steps: must be an integer, got '1.5'"),
        (["--learning-rate", "x"], "argument --learning-rate: must be a number, got 'x'"),
        (["--limit-s", "x"], "argument --limit-s: must be a number, or none, got 'x'"),
        (["--seeds", "1,,2"], "argument --seeds: must be a list, each element an integer"),
        (["--folder", ""], "argument --folder: must be a path, got ''"),
        (["--steps"], "argument --steps: expected one argument"),
        (["--stpes", "5"], "demo: unknown argument '--stpes'; did you mean '--steps'?"),
        (["what"], "demo: unknown argument 'what'; allowed are --world, --steps"),
        ([], "demo: world is required (--world)"),
        (["--config", "/nowhere.yaml"], "/nowhere.yaml: cannot be read: No such file"),
    ],
)
def test_a_wrong_command_line_says_what_is_allowed(argv, message):
    """The message names the flag, what is allowed and what came."""
    with pytest.raises(UsageError) as caught:
        parsed(*argv)

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "step: 5", ": unknown field 'step'; did you mean 'steps'?"),
        ("a.yaml", "zzzzzz: 5", ": unknown field 'zzzzzz'; allowed are world, steps, "),
        ("a.yaml", "5: 5", ": unknown field 5; allowed are world, "),
        ("a.yaml", "steps: '5'", ": steps must be an integer, got '5'"),
        ("a.yaml", "steps: 5.0", ": steps must be an integer, got 5.0"),
        ("a.yaml", "steps: true", ": steps must be an integer, got True"),
        ("a.yaml", "steps: null", ": steps must be an integer, got None"),
        ("a.yaml", "world: 5", ": world must be text, got 5"),
        ("a.yaml", "quick: 1", ": quick must be true or false, got 1"),
        ("a.yaml", "learning_rate: fast", ": learning_rate must be a number, got 'fast'"),
        (
            "a.yaml",
            f"learning_rate: 1{'0' * 400}",
            ": not YAML: a whole number must have at most 308 digits, got 1",
        ),
        ("a.yaml", "limit_s: [1]", ": limit_s must be a number, or none, got [1]"),
        ("a.yaml", "seeds: 5", ": seeds must be a list, each element an integer, got 5"),
        ("a.yaml", "seeds: [1.5]", ": seeds must be a list, each element an integer, got [1.5]"),
        ("a.yaml", "steps: 5", ": world is required"),
        ("a.yaml", "steps: [1\n", ", line 2: not YAML: did not find expected ',' or ']'"),
        ("a.yaml", "steps: 1\nworld: a\nsteps: 2", ", line 3: steps is given twice"),
        ("a.yaml", "steps: \x01", ": not YAML: unacceptable character"),
        ("a.yaml", "- 5", ": must be a mapping of field names to values, got [5]"),
        ("a.yaml", "", ": must be a mapping of field names to values, got None"),
        ("a.json", '{\n"steps": 5,\n}', ": not readable as JSON in line 3: "),
    ],
)
def test_a_wrong_file_says_which_field_and_what_is_allowed(tmp_path, name, text, message):
    """The message names the file, the line or field, what is allowed and what came."""
    path = written(tmp_path / name, text)

    with pytest.raises(UsageError) as caught:
        parsed("--config", path)

    # parse() itself reports what is missing once the flags are known, so it names the command
    expected = "demo: world is required" if "required" in message else path + message
    assert str(caught.value).startswith(expected)


def test_a_file_that_is_not_text_is_refused(tmp_path):
    """A checkpoint given as the scenario file is named, not shown as a decoding error."""
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(UsageError, match=r"a\.yaml: cannot be read: not UTF-8 text"):
        parsed("--config", str(path))


def test_help_shows_each_flag_with_its_default(capsys):
    """--help is the documentation of the fields, percent signs included."""
    with pytest.raises(SystemExit) as caught:
        parsed("--help")

    shown = " ".join(capsys.readouterr().out.split())
    assert caught.value.code == 0
    assert "--steps INT environment steps, 100% of them (default: 100)" in shown
    assert "--world STR (required)" in shown
    assert "--tensorboard, --no-tensorboard (default: true)" in shown
    assert "--limit-s FLOAT (default: none)" in shown
    assert "--seeds INT,... (default: 0,1)" in shown


def test_a_field_of_another_type_is_our_bug():
    """A dict has no spelling on the command line."""

    @dataclass(frozen=True, kw_only=True)
    class Nested:
        links: dict[str, float]

    with pytest.raises(TypeError, match="cannot be of type dict"):
        parse(Nested, [], prog="demo", description="")
