"""Network files in their usual form, read without the YAML library and held against it."""

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from astra_sim.files.yaml_fields import plain_lists, read_yaml_mapping

USUAL = b"""# a ring
topology: [ Ring ]   # of four
npus_count: [4]

bandwidth: [ 50.0, 1e-3 ]
latency: [ +500 ,.5]
"""

PIECES = st.sampled_from(
    [
        *("topology", "key", ":", ": ", " ", "[", "[ ", "]", " ]", ", ", ",", "Ring", "4", "5.0"),
        *("-1", "1e-3", "#", " # note", "\n", "\n  ", "\t", "\r\n", "null", "'", '"', "{", "}"),
        *("- ", "~", "---\n", "...", "é", "&a", "*a", "!", "|", ">", "%", "@", "?", ".", "+", "_"),
    ]
)


def outcome(text: bytes, folder) -> object:
    """Mapping that is read, or the beginning of the refusal."""
    path = folder / "network.yml"
    path.write_bytes(text)
    try:
        return read_yaml_mapping(path, kind="network")
    except ValueError as error:
        return type(error)


def by_the_library(text: bytes, refused: object) -> object:
    try:
        content = yaml.load(text, Loader=yaml.BaseLoader)
    except (ValueError, yaml.YAMLError):
        return refused
    return content if isinstance(content, dict) else refused


def usual_lines() -> st.SearchStrategy[str]:
    words = st.lists(st.sampled_from(["Ring", "4", "5.0", "1e-3", "+1", ".5", "null"]), min_size=1)
    return st.builds(
        lambda key, listed, gap, note: f"{key}:{gap} [{gap}{f'{gap},'.join(listed)}]{note}",
        st.sampled_from(["topology", "npus_count", "a"]),
        words,
        st.sampled_from(["", " ", "  "]),
        st.sampled_from(["", " # note", "#", "  "]),
    )


def blocks() -> st.SearchStrategy[str]:
    """Lists line by line; lines indented otherwise than the one before go on with its text."""
    items = st.lists(st.sampled_from(["- 4", "- Ring", "  - 5.0", " - x", "-", "  ", "y"]))
    return st.builds(
        lambda key, lines: "\n".join([key, *lines]), st.sampled_from(["a:", "b: "]), items
    )


@example(text=USUAL.decode())
@example(text=yaml.safe_dump({"topology": ["Ring"], "latency": [1.5, 500]}))
@given(
    text=st.one_of(
        st.lists(PIECES, max_size=12).map("".join),
        st.lists(st.one_of(usual_lines(), blocks(), st.just(""), st.just(" # x")), max_size=4).map(
            "\n".join
        ),
    )
)
def test_any_text_is_read_as_by_the_library(text, tmp_path_factory):
    content = text.encode()
    read = outcome(content, tmp_path_factory.getbasetemp())

    assert read == by_the_library(content, read if isinstance(read, type) else None)


def test_the_usual_forms_are_read(tmp_path):
    assert plain_lists(yaml.safe_dump({"latency": [1.5, 500]}).encode()) == {
        "latency": ["1.5", "500"]
    }
    assert (
        plain_lists(USUAL)
        == outcome(USUAL, tmp_path)
        == {
            "topology": ["Ring"],
            "npus_count": ["4"],
            "bandwidth": ["50.0", "1e-3"],
            "latency": ["+500", ".5"],
        }
    )
