"""Profiles made of measured runs: their file, and what is said about them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from calibration.measured.layer_tables import TimedPoint, quicker_though_larger
from des.base.csv_text import csv_of_columns
from des.world.files.profile_files import PROFILE_COLUMNS
from des.world.layer_profiles import LAYER_SIZES


def renamed(points: Sequence[TimedPoint], names: Sequence[str]) -> list[TimedPoint]:
    """Give GPUs other names: one for the only GPU there is, or ``OLD=NEW`` for some.

    Raises
    ------
    ValueError
        If the points are of several GPUs and one name is given, or there is no such GPU.
    """
    held = list(dict.fromkeys(one.gpu for one in points))
    if len(names) == 1 and "=" not in names[0]:
        if len(held) > 1:
            raise ValueError(
                f"gpu must be OLD=NEW for times of several GPUs, {', '.join(held)}; got {names[0]}"
            )
        return [replace(one, gpu=names[0]) for one in points]
    new_of: dict[str, str] = {}
    for entry in names:
        old, sign, new = entry.rpartition("=")
        if not sign or old not in held:
            raise ValueError(f"gpu must be OLD=NEW for some of {', '.join(held)}; got {entry}")
        new_of[old] = new
    return [replace(one, gpu=new_of.get(one.gpu, one.gpu)) for one in points]


def require_single(points: Sequence[TimedPoint]) -> None:
    """Refuse points that two tables give.

    Raises
    ------
    ValueError
        Naming the first one.
    """
    seen = set()
    for one in points:
        key = one.gpu, one.point.layer, one.point.place
        if key in seen:
            raise ValueError(
                f"every point must be of one table or of timed layers alone, got {one.point.layer} "
                f"at {one.point.place} on {one.gpu} twice"
            )
        seen.add(key)


def profile_csv(points: Sequence[TimedPoint], comments: Sequence[str]) -> bytes:
    """Write a profile after lines of comment, without columns that no point fills."""
    rows = [_row(one) for one in points]
    columns = [name for name in PROFILE_COLUMNS if any(row[name] != "" for row in rows)]
    head = "".join(f"# {line}\n" for line in comments)
    return (head + csv_of_columns(columns, rows)).encode()


def _row(timed: TimedPoint) -> dict[str, object]:
    point = timed.point
    sizes = dict.fromkeys(LAYER_SIZES, "") | point.layer.sizes
    return {
        "gpu": timed.gpu,
        "layer": point.layer.kind,
        **sizes,
        "tensor": point.tensor,
        "microbatch_size": point.microbatch_size,
        "sequence": point.sequence,
        "forward_s": point.forward_s,
        "input_gradient_s": point.input_gradient_s,
        "weight_gradient_s": point.weight_gradient_s,
        "exchanges": "" if timed.exchanges == "excluded" else timed.exchanges,
    }


def report_lines(points: Sequence[TimedPoint]) -> Iterator[str]:
    """Say what a profile holds, how far repeats are apart, and which times are implausible."""
    repeats: dict[str, list[int]] = {}
    for one in points:
        repeats.setdefault(f"{one.gpu}, {one.point.layer.kind}", []).append(one.num_rows)
    for name, numbers in repeats.items():
        few, most = min(numbers), max(numbers)
        rows = f"{few}" if few == most else f"{few} to {most}"
        yield f"{name}: {len(numbers)} points, rows of each: {rows}"
    repeated = [
        (max(one.spreads), str(one.point.layer), one.point.place)
        for one in points
        if one.spreads is not None and one.num_rows > 1
    ]
    if repeated:
        middle, (largest, layer, place) = sorted(repeated)[len(repeated) // 2][0], max(repeated)
        yield (
            f"quartiles of repeats apart: {100 * middle:.2g} % of the median at the middle point, "
            f"{100 * largest:.2g} % at the worst ({layer}; {place})"
        )
    for smaller, larger in quicker_though_larger(points):
        yield (
            f"implausible: on {larger.gpu}, {larger.point.layer} is quicker at "
            f"{larger.point.place} than at {smaller.point.place}"
        )
