"""Orders of passes in torch's files: a row for each rank, cells of stage, pass and microbatch."""

import re

from des.schedules import Operation, Order, Orders, Pass

_LETTERS: dict[Pass, str] = {"F": "F", "B": "B", "D": "I", "W": "W"}
"""Passes as torch writes them: the half of a backward pass that makes input gradients is I."""

_PASSES = {letter: kind for kind, letter in _LETTERS.items()}


def orders_text(orders: Orders) -> str:
    """Write orders as torch reads them: no header, no comment, no empty line.

    Examples
    --------
    >>> orders_text(((Operation("F", 0, 0), Operation("D", 0, 0), Operation("W", 0, 0)),))
    '0F0,0I0,0W0\\n'
    """
    return "".join(
        ",".join(f"{one.stage}{_LETTERS[one.kind]}{one.microbatch}" for one in order) + "\n"
        for order in orders
    )


def read_orders(text: str) -> Orders:
    """Read orders of passes.

    Raises
    ------
    ValueError
        If a cell is none of a pass, or a pass stands twice; naming row and cell.
    """
    return tuple(_read_row(row, number) for number, row in enumerate(text.splitlines()))


def _read_row(row: str, number: int) -> Order:
    found: dict[Operation, None] = {}
    for cell in row.split(","):
        match = re.fullmatch(r"([0-9]{1,6})([FBIW])([0-9]{1,6})", cell)
        if match is None:
            raise ValueError(
                f"schedule.csv: cells of row {number} must be passes such as 0F0, 1I2, 1W2 or 0B3, "
                f"as torch posts sends and receives itself; got {cell!r}: torch reads some such "
                "cells as others, and messages in another order give wrong gradients silently"
            )
        own = Operation(_PASSES[match[2]], int(match[3]), int(match[1]))
        if own in found:
            raise ValueError(
                f"schedule.csv: row {number} must have each pass once, got {cell} twice, which "
                "torch runs"
            )
        found[own] = None
    return tuple(found)
