"""Flags that several commands have, and reading their values."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn, TypeVar, get_args

from calibration.cases.case import Granularity
from calibration.commands.ending import UsageError
from des import ALIASES, ARCHITECTURES, Topology, read_topology
from des.base.checks import MOST_ITEMS, require_count, require_positive, require_seed
from des.worlds import EAST_CENTRAL_WEST

Number = TypeVar("Number", int, float)

DEFAULT_STORE = "runs/calibration.sqlite"
DEFAULT_MODEL = "llama2_70b"
MODELS = ", ".join([*ARCHITECTURES, *ALIASES])
ENDPOINTS = ("overlapped", "one_in_flight")
"""Rules of senders that an execution trace can follow."""


class Parser(argparse.ArgumentParser):
    """Raises instead of printing the usage, so that every error is one line."""

    def error(self, message: str) -> NoReturn:
        """Report a wrong command line."""
        raise UsageError(message)


def add_flag(
    parser: argparse.ArgumentParser,
    name: str,
    kind: Callable[[str], object],
    default: str | None,
    explanation: str,
) -> None:
    """Add a flag with a value; a default is read as if it were given."""
    shown = "" if default is None else " (default: %(default)s)"
    parser.add_argument(name, type=kind, default=default, help=explanation + shown)


def count(text: str) -> int:
    """Read a whole number of at least 1."""
    return _read(text, int, lambda value: require_count("value", "it", value))


def seed(text: str) -> int:
    """Read a seed."""
    return _read(text, int, lambda value: require_seed("value", "it", value))


def whole_number(text: str) -> int:
    """Read a whole number, also 0."""
    return 0 if text.strip() == "0" else count(text)


def positive(text: str) -> float:
    """Read a positive number."""
    return _read(text, float, lambda value: require_positive("value", "it", value))


def counts(text: str) -> tuple[int, ...]:
    """Read whole numbers with commas between them."""
    return tuple(_item_count(item) for item in text.split(","))


def least_and_most(text: str) -> tuple[int, int]:
    """Read two whole numbers, or one for both."""
    values = counts(text)
    if len(values) > 2 or values[0] > values[-1]:
        raise argparse.ArgumentTypeError(
            f"must be LEAST,MOST, such as 8,64, or one number for both; got {text!r}"
        )
    return values[0], values[-1]


def names(text: str) -> tuple[str, ...]:
    """Read names with commas between them."""
    return tuple(item.strip() for item in text.split(","))


def _item_count(text: str) -> int:
    return _read(text, int, lambda value: require_count("value", "it", value, MOST_ITEMS))


def _read(text: str, kind: Callable[[str], Number], check: Callable[[Number], None]) -> Number:
    """Read a number; argparse puts the name of the flag before what is wrong with it."""
    try:
        value = kind(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from error
    try:
        check(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("value: it ")) from error
    return value


def add_world_flags(parser: argparse.ArgumentParser) -> None:
    """Add what is run on: the network, its endpoints, the granularity."""
    add_flag(parser, "--network", str, EAST_CENTRAL_WEST.stem, "topology file, or a shipped world")
    parser.add_argument(
        "--endpoints",
        choices=ENDPOINTS,
        help="overrule transport.endpoints of the network; the original's programs, which have "
        "one communication slot an NPU, need one_in_flight, which export writes unless told "
        "otherwise",
    )
    parser.add_argument(
        "--granularity",
        choices=get_args(Granularity),
        default="domain",
        help="one NPU a domain, or one a GPU (default: %(default)s)",
    )


def world_from_flags(arguments: argparse.Namespace) -> Topology:
    """Read the network of `add_world_flags`."""
    topology = read_topology(arguments.network)
    if arguments.endpoints is None:
        return topology
    transport = replace(topology.transport, endpoints=arguments.endpoints)
    return replace(topology, transport=transport)
