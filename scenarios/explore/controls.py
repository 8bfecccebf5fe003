"""Controls of the explorer: the values that each may have, and settings from values that came."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from des import ARCHITECTURES, SCHEDULES
from des.base.checks import nearest
from des.world.topology import Topology
from des.worlds import EXAMPLES, WORLDS
from scenarios.explore.scene import FAMILY_NAMES, Settings

CONTROLS = (
    *("network", "model", "family", "schedule"),
    *("bandwidth", "latency", "gpus", "sequences"),
)
"""Controls in the order of the page."""

_LONGEST_TEXT = 40
_DECIMAL = re.compile(r"-?[0-9]{1,4}(\.[0-9]{1,4})?")


class ControlError(ValueError):
    """A control has a value that it cannot have; ``control`` is its name."""

    def __init__(self, control: str, message: str) -> None:
        super().__init__(message)
        self.control = control


@dataclass(frozen=True, kw_only=True)
class Controls:
    """Values that controls may have, as the settings and the world that the page begins with ask.

    Attributes
    ----------
    names
        Values to choose from; of a schedule, to which a suffix may be added, those suggested.
    spans
        Least, greatest and step of numbers; of bandwidth and latency as powers of 2.
    """

    first: Settings
    names: Mapping[str, tuple[str, ...]]
    spans: Mapping[str, tuple[float, float, float]]

    @classmethod
    def of(cls, first: Settings, topology: Topology) -> "Controls":
        """Controls of a page that begins with settings and their world."""
        num_gpus = max(domain.num_gpus for domain in topology.domains)
        return cls(
            first=first,
            names={
                "network": tuple(sorted({*WORLDS, *EXAMPLES, first.network})),
                "model": tuple(sorted({*ARCHITECTURES, first.model})),
                "family": FAMILY_NAMES,
                "schedule": tuple(SCHEDULES),
            },
            spans={
                "bandwidth": (-4.0, 4.0, 0.25),
                "latency": (-4.0, 4.0, 0.25),
                "gpus": (1, max(64, num_gpus), 1),
                "sequences": (1, max(256, first.num_sequences), 1),
            },
        )

    def settings(self, values: Sequence[object]) -> Settings:
        """Return settings with values of the controls, in their order.

        Raises
        ------
        ControlError
            If a control cannot have its value.
        ValueError
            If the settings cannot be.
        """
        value_of = dict(zip(CONTROLS, values, strict=True))
        return replace(
            self.first,
            network=self._name("network", value_of),
            model=self._name("model", value_of),
            family=FAMILY_NAMES[FAMILY_NAMES.index(self._name("family", value_of))],
            schedule=self._text("schedule", value_of),
            bandwidth_factor=2.0 ** self._number("bandwidth", value_of),
            latency_factor=2.0 ** self._number("latency", value_of),
            num_gpus=int(self._number("gpus", value_of)),
            num_sequences=int(self._number("sequences", value_of)),
        )

    def _text(self, control: str, value_of: Mapping[str, object]) -> str:
        value = value_of[control]
        if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
            raise ControlError(
                control, f"{control} must have at most {_LONGEST_TEXT} characters, got {_s(value)}"
            )
        return value

    def _name(self, control: str, value_of: Mapping[str, object]) -> str:
        value, known = value_of[control], self.names[control]
        if value not in known:
            raise ControlError(
                control,
                f"{control} must be one of those suggested, got {_s(value)}; "
                f"{nearest(_s(value), known)}",
            )
        return str(value)

    def _number(self, control: str, value_of: Mapping[str, object]) -> float:
        value, (least, most, step) = value_of[control], self.spans[control]
        number = _number_of(value)
        if least <= number <= most and (step != 1 or number == math.floor(number)):
            return float(number)
        kind = "a whole number" if step == 1 else "a number"
        raise ControlError(
            control, f"{control} must be {kind} from {least:g} to {most:g}, got {_s(value)}"
        )


def _number_of(value: object) -> float:
    """Number that came, or whose text came, as a browser sends that of a slider; else NaN."""
    if isinstance(value, str):
        return float(value) if _DECIMAL.fullmatch(value) else math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return value


def _s(value: object) -> str:
    """A value that came, as far as a message has room."""
    text = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."
