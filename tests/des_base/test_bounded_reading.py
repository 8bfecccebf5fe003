"""Texts are refused before they take memory, time or a screen."""

from pathlib import Path

import pytest
import yaml

from des.base.bounded_files import read_at_most
from des.base.command import exit_code_of
from des.base.names import one_line, require_name
from des.base.strict_json import parse_json
from des.base.strict_yaml import MOST_DEPTH, MOST_NODES, require_bounded_yaml
from des.base.text_files import read_text, read_yaml


def refused(text: str) -> str:
    with pytest.raises(yaml.MarkedYAMLError) as caught:
        require_bounded_yaml(text)
    return str(caught.value.problem)


def test_aliases_count_as_what_they_stand_for():
    """4 x 10^n values and their lists: at five levels they are within the bound, at six not."""
    levels = ["a0: &a0 [1, 2, 3, 4]"]
    levels += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 6)]

    require_bounded_yaml("\n".join(levels[:5]))
    assert refused("\n".join(levels)) == f"must hold at most {MOST_NODES} values, aliases in full"


def test_an_alias_inside_of_its_own_value_is_refused():
    assert refused("&a [*a]") == "alias 'a' must be of a value before it"


def test_nesting_is_allowed_as_deep_as_it_says():
    require_bounded_yaml("[" * MOST_DEPTH + "]" * MOST_DEPTH)
    assert refused("[" * (MOST_DEPTH + 1)) == f"must nest at most {MOST_DEPTH} deep"


@pytest.mark.parametrize(
    "tag", ["!!bool maybe", "!!timestamp x", "!!python/name:os.system", "!x 1"]
)
def test_tags_are_refused(tag):
    assert refused(f"a: {tag}").startswith("tag ")


def test_an_error_names_file_and_line(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("a: 1\nb: " + "1" * 1001)

    with pytest.raises(ValueError, match=r"a\.yaml, line 2: not YAML: must have quotes around"):
        read_yaml(path)


def test_twenty_thousand_keys_are_read_and_the_last_one_is_checked(tmp_path):
    path = tmp_path / "a.yaml"
    text = "".join(f"k{i}: {i}\n" for i in range(20_000))
    path.write_text(text)
    assert read_yaml(path) == {f"k{i}": i for i in range(20_000)}

    path.write_text(f"{text}k0: 1\n")
    with pytest.raises(ValueError, match=r"line 20001: k0 is given twice"):
        read_yaml(path)


def test_json_has_a_bound_for_values():
    assert parse_json("[" + "1," * 1000 + "1]") == [1] * 1001
    with pytest.raises(ValueError, match="must hold at most 500000 values, got about 600001"):
        parse_json("[" + "1," * 600_000 + "1]")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no endless device")
def test_an_endless_device_is_read_as_far_as_the_bound():
    with pytest.raises(ValueError, match="/dev/zero: must have at most 67108864 bytes, got more"):
        read_text(Path("/dev/zero"))


def test_a_file_of_the_most_bytes_is_read(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")

    assert read_at_most(tmp_path / "a", 5) == b"12345"
    with pytest.raises(ValueError, match="must have at most 4 bytes"):
        read_at_most(tmp_path / "a", 4)


def test_a_message_of_400_kb_is_one_line_that_a_screen_holds(capsys):
    def body() -> None:
        raise ValueError(f"file: key {'k' * 400_000!r} is unknown\n\x1b[31mred\x07 \u202e")

    assert exit_code_of(body) == 2
    error = capsys.readouterr().err
    assert len(error) < 2100
    assert error.startswith("error: file: key 'kkk")
    assert error.endswith("is unknown \\x1b[31mred\\x07 \\u202e\n")


@pytest.mark.parametrize("most", [20, 100, 2000])
def test_a_line_is_never_longer_than_its_bound(most):
    for length in (0, most - 1, most, most + 1, 10 * most):
        assert len(one_line("a" * length, most)) <= most


@pytest.mark.parametrize("name", ["", "a\x1b[31m", "a\nb", "\u202e", "n" * 201, None])
def test_a_name_that_acts_on_a_terminal_is_none(name):
    with pytest.raises(ValueError, match="node: name must be 1 to 200 printable characters, got"):
        require_name("node", "name", name)


def test_python_and_this_module_agree_on_ends_of_lines(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\r\nb\rc\n")

    assert read_text(path) == path.read_text("utf-8") == "a\nb\nc\n"
