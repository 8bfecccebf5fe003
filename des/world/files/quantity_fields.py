"""Fields of topology files that are quantities: numbers with units."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from des.base.quantities import (
    BANDWIDTH_BYTES_PER_S,
    FLOPS_PER_S,
    SIZE_BYTES,
    TIME_S,
    Units,
    parse_quantity,
    require_in_reach,
)


def _quantity(units: Units, *, zero: bool = False) -> BeforeValidator:
    """Make a validator that turns ``"5Gbps"`` into a float of the base unit."""

    def parse(value: object) -> float:
        number = parse_quantity(value, units)
        if number < 0 or (number == 0 and not zero):
            raise ValueError(f"must be {'at least 0' if zero else 'positive'}; got {value!r}")
        return require_in_reach(number, value)

    return BeforeValidator(parse)


Bandwidth = Annotated[float, _quantity(BANDWIDTH_BYTES_PER_S)]
Latency = Annotated[float, _quantity(TIME_S, zero=True)]
Speed = Annotated[float, _quantity(FLOPS_PER_S)]
Size = Annotated[float, _quantity(SIZE_BYTES)]
Price = Annotated[float, Field(ge=0)]
"""A bare number; the key says of what and per what."""
