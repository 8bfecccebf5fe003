"""Texts of a map: names of sites and bandwidths of links, none on another."""

from collections.abc import Iterator, Mapping, Sequence

from des.figures.marks import Text, TextPlace
from des.world.topology import Link

Places = Mapping[str, tuple[float, float]]
"""Position of each domain on the map."""

_CHARACTER_INCHES, _LINE_INCHES, _OFFSET_INCHES = 0.08, 0.16, 0.22
_MOST_PAIRS = 6
"""Pairs of sites whose bandwidths are named; more would hide the map."""

_ALONG = 0.42
"""Place of a bandwidth between two sites: not in the middle, where others may cross."""

_Box = tuple[float, float, float, float]


def map_texts(
    at: Places, names: Mapping[str, str], links: Sequence[Link], inches_per_unit: float
) -> Iterator[Text]:
    """Yield the bandwidths of pairs of sites, then the name of each site.

    Bandwidths of many pairs are left out, and one that would lie on another; names go to the side
    where there is room.
    """
    taken = [_box(x, y, "00", "middle center", inches_per_unit) for x, y in at.values()]
    bandwidths = _bandwidths(links)
    for (one, other), text in bandwidths.items() if len(bandwidths) <= _MOST_PAIRS else ():
        (x, y), (to_x, to_y) = at[one], at[other]
        x, y = x + _ALONG * (to_x - x), y + _ALONG * (to_y - y)
        box = _box(x, y, text, "middle center", inches_per_unit)
        if not any(_overlap(box, each) for each in taken):
            taken.append(box)
            yield Text(x=x, y=y, text=text)
    middle = sum(y for _, y in at.values()) / len(at)
    for name, text in names.items():
        x, y = at[name]
        sides: list[TextPlace] = ["top center", "bottom center", "middle right", "middle left"]
        sides[:2] = sides[:2] if y >= middle else sides[1::-1]
        boxes = {side: _box(x, y, text, side, inches_per_unit) for side in sides}
        free = (one for one in sides if not any(_overlap(boxes[one], each) for each in taken))
        side = next(free, sides[0])
        taken.append(boxes[side])
        yield Text(x=x, y=y, text=text, at=side)


def _bandwidths(links: Sequence[Link]) -> dict[tuple[str, str], str]:
    """Text of each pair of sites, whose directions may differ."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for link in links:
        one, other = sorted((link.source, link.target))
        gbit = f"{link.bandwidth_bytes_per_s * 8e-9:.3g}"
        found.setdefault((one, other), {})[gbit] = None
    return {pair: f"{' / '.join(gbits)} Gbit/s" for pair, gbits in found.items()}


def _box(x: float, y: float, text: str, side: TextPlace, inches_per_unit: float) -> _Box:
    """Left, bottom, right and top of a text. [inches]"""
    vertical, horizontal = side.split()
    width = _CHARACTER_INCHES * len(text)
    x = x * inches_per_unit
    y = y * inches_per_unit + {"top": _OFFSET_INCHES, "bottom": -_OFFSET_INCHES}.get(vertical, 0.0)
    shift = {"right": 0.5, "left": -0.5}.get(horizontal, 0.0)
    x += shift * (width + _OFFSET_INCHES)
    return x - width / 2, y - _LINE_INCHES / 2, x + width / 2, y + _LINE_INCHES / 2


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
