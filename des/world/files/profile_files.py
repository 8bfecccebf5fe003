"""Profiles of layers in files: CSV tables and JSON, with one point a row."""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from des.base.checks import nearest, prefixed_errors, require_one_of
from des.base.strict_json import parse_json
from des.base.text_files import read_text
from des.world.layer_profiles import LAYER_SIZES, LayerProfile, ProfiledLayer, ProfilePoint

PLACE_COLUMNS = ("tensor", "microbatch_size", "sequence")
TIME_COLUMNS = ("forward_s", "input_gradient_s", "weight_gradient_s")
NEEDED_COLUMNS = ("gpu", "layer", "hidden_size", *PLACE_COLUMNS, *TIME_COLUMNS)
PROFILE_COLUMNS = ("gpu", "layer", *LAYER_SIZES, *PLACE_COLUMNS, *TIME_COLUMNS, "exchanges")
"""Columns of a profile; sizes other than ``hidden_size`` and ``exchanges`` may be left out."""

EXCHANGES = MappingProxyType({"excluded": False, "included": True})
"""Whether measured times include the sums over a tensor group, by the word in a file."""

_Row = Mapping[str, object]


def read_layer_profile(
    path: str | Path, *, gpu: str | None = None, extrapolates: bool = False
) -> LayerProfile:
    """Read the points of one GPU from a ``.csv`` or ``.json`` file.

    Parameters
    ----------
    gpu
        Name of the GPU in the file; None takes the only one there is.

    Raises
    ------
    ValueError
        If the file cannot be read, is no profile, or has no such GPU; naming file, line, column,
        what is allowed and what came.
    """
    path = Path(path)
    text = read_text(path)
    try:
        places = list(_json_rows(text) if path.suffix.lower() == ".json" else csv_rows(text))
        points: dict[str, list[ProfilePoint]] = {}
        words = set()
        for place, row in places:
            name = _text(place, row, "gpu")
            points.setdefault(name, []).append(profile_point(place, row))
            words.add((name, _exchanges(place, row)))
        chosen = _choose(gpu, list(points))
        includes = {included for name, included in words if name == chosen}
        if len(includes) > 1:
            raise ValueError(f"exchanges: must be one word for all points of {chosen}, got both")
        return LayerProfile(
            name=path.name,
            gpu=chosen,
            points=tuple(points[chosen]),
            includes_exchanges=includes.pop(),
            extrapolates=extrapolates,
        )
    except (csv.Error, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def _choose(gpu: str | None, held: list[str]) -> str:
    if not held:
        raise ValueError("must hold at least one point, got none")
    if gpu in held:
        return str(gpu)
    if gpu is None and len(held) == 1:
        return held[0]
    wanted = "one GPU, or its name be given" if gpu is None else f"times of GPU {gpu}"
    raise ValueError(f"must hold {wanted}; got those of {', '.join(held)}")


def csv_rows(text: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Rows of a table by column, each with its place; lines that begin with # are left out."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    skipped = len(text.splitlines()) - len(lines)
    reader = csv.DictReader(lines, strict=True)
    header = reader.fieldnames or []
    if len(set(header)) < len(header):
        raise ValueError(f"columns must be named once, got {','.join(header)}")
    for row in reader:
        place = f"line {reader.line_num + skipped}"
        if None in row or None in row.values():
            raise ValueError(f"{place}: must have {len(header)} fields, one per column")
        yield place, {name: cell for name, cell in row.items() if cell != ""}


def _json_rows(text: str) -> Iterator[tuple[str, _Row]]:
    content = parse_json(text)
    if not isinstance(content, dict) or not isinstance(content.get("points"), list):
        raise ValueError("must be a mapping with a list of points")
    shared = {key: content[key] for key in ("gpu", "exchanges") if key in content}
    for key in content:
        if key not in ("source", "points", "gpu", "exchanges"):
            raise ValueError(
                f"{key}: unknown key; {nearest(key, ('source', 'points', 'gpu', 'exchanges'))}"
            )
    for index, point in enumerate(content["points"]):
        if not isinstance(point, dict):
            raise ValueError(f"points[{index}]: must be a mapping, got {point!r}")
        yield f"points[{index}]", shared | point


def profile_point(place: str, row: _Row) -> ProfilePoint:
    """Make a point of the cells of a row; ``place`` is its line in messages.

    Raises
    ------
    ValueError
        If a column is missing or unknown, or a cell is wrong.
    """
    for column in row:
        if column not in PROFILE_COLUMNS:
            hint = nearest(str(column), PROFILE_COLUMNS)
            raise ValueError(f"{place}: {column}: unknown column; {hint}")
    sizes = {name: _whole(place, row, name) for name in LAYER_SIZES if name in row}
    if "hidden_size" not in sizes:
        raise ValueError(f"{place}: hidden_size must be given, got none")
    tensor, microbatch_size, sequence = (_whole(place, row, name) for name in PLACE_COLUMNS)
    forward_s, input_gradient_s, weight_gradient_s = (
        _time(place, row, name) for name in TIME_COLUMNS
    )
    kind = _text(place, row, "layer")
    with prefixed_errors(f"{place}: "):
        return ProfilePoint(
            layer=ProfiledLayer(kind=kind, **sizes),  # type: ignore[arg-type]  # checked there
            tensor=tensor,
            microbatch_size=microbatch_size,
            sequence=sequence,
            forward_s=forward_s,
            input_gradient_s=input_gradient_s,
            weight_gradient_s=weight_gradient_s,
        )


def _cell(place: str, row: _Row, column: str) -> object:
    if column not in row:
        raise ValueError(f"{place}: {column} must be given, got none")
    return row[column]


def _text(place: str, row: _Row, column: str) -> str:
    cell = _cell(place, row, column)
    if not isinstance(cell, str):
        raise ValueError(f"{place}: {column} must be text, got {cell!r}")
    return cell.strip()


def _whole(place: str, row: _Row, column: str) -> int:
    cell = _cell(place, row, column)
    if isinstance(cell, str) and cell.strip().isdecimal():
        return int(cell)
    if isinstance(cell, bool) or not isinstance(cell, int):
        raise ValueError(f"{place}: {column} must be a whole number, got {cell!r}")
    return cell


def _time(place: str, row: _Row, column: str) -> float:
    cell = _cell(place, row, column)
    try:
        if isinstance(cell, bool) or not isinstance(cell, str | int | float):
            raise ValueError("neither text nor a number")
        return float(cell)
    except (OverflowError, ValueError) as error:
        raise ValueError(f"{place}: {column} must be a number of seconds, got {cell!r}") from error


def _exchanges(place: str, row: _Row) -> bool:
    word = row.get("exchanges", "excluded")
    require_one_of(place, "exchanges", word, EXCHANGES)
    return EXCHANGES[str(word)]
