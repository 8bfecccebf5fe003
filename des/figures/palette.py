"""Colours of all figures: for any colour vision, seen on white and on dark pages."""

# Okabe and Ito, "Color Universal Design", 2008.
BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
AMBER = "#F5CE73"
GREY = "#8C8C8C"

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY)
"""Colours of series, in order."""

INK = "#333333"
FAINT = "#D9D9D9"
SCALE = ((0.0, "#EAF2F8"), (0.5, "#7FB2D8"), (1.0, "#0B4A7A"))
"""Colour scale of cells, from nothing to most."""


def colour(place: int) -> str:
    """Return the colour of a series by its place; they repeat."""
    return COLOURS[place % len(COLOURS)]


def tint(colour: str) -> str:
    """Return a colour halfway to white, for fields with texts.

    Examples
    --------
    >>> tint("#0072B2")
    '#80b9d9'
    """
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{(one + 256) // 2:02x}" for one in parts)
