"""Names of the algorithms that collectives are run by."""

import re
from typing import Literal, Self, get_args

from astra_sim.base.values import dataclass
from astra_sim.files.errors import AbortError, AstraSimError
from astra_sim.files.json_fields import require_whole, shown

AlgorithmName = Literal["ring", "direct", "halvingDoubling", "doubleBinaryTree"]

_PLAIN: dict[str, tuple[AlgorithmName, bool]] = {
    "ring": ("ring", False),
    "oneRing": ("ring", True),
    "halvingDoubling": ("halvingDoubling", False),
    "oneHalvingDoubling": ("halvingDoubling", True),
    "doubleBinaryTree": ("doubleBinaryTree", False),
}
_DIRECT = re.compile("(direct|oneDirect)(.*)", re.DOTALL)
_WINDOW = re.compile("[+-]?[0-9]+")
_MAX_WINDOW_LENGTH = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """Algorithm of one phase of a collective: over one dimension or, as ``one...``, over all NPUs.

    ``window`` is how many exchanges a direct algorithm has under way at once, None without limit.
    """

    name: AlgorithmName
    whole_system: bool = False
    window: int | None = None

    def __post_init__(self) -> None:
        if self.name not in get_args(AlgorithmName):
            allowed = ", ".join(get_args(AlgorithmName))
            raise AstraSimError(f"algorithm: name must be one of {allowed}; got {shown(self.name)}")
        if self.whole_system and self.name == "doubleBinaryTree":
            raise AstraSimError("algorithm doubleBinaryTree: whole_system must be False, got True")
        if self.window is not None:
            if self.name != "direct":
                raise AstraSimError(
                    f"algorithm {self.name}: window must be None, got {shown(self.window)}"
                )
            require_whole("algorithm direct: window", self.window, 0)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the name that a file uses: ``ring``, ``oneRing``, ``direct``, ``oneDirect8`` ...

        Raises
        ------
        AstraSimError
            If there is no such algorithm.
        AbortError
            If the window of a direct one is no number.

        Examples
        --------
        >>> Algorithm.parse("oneDirect8")
        Algorithm(name='direct', whole_system=True, window=8)
        """
        if text in _PLAIN:
            name, whole_system = _PLAIN[text]
            return cls(name=name, whole_system=whole_system)
        direct = _DIRECT.fullmatch(text)
        if direct is None:
            raise AstraSimError(
                f"must be one of {', '.join(_PLAIN)}, direct, oneDirect or either of these with a "
                f"window; got {shown(text)}"
            )
        prefix, window = direct.groups()
        return cls(name="direct", whole_system=prefix == "oneDirect", window=_window(window, text))


def _window(digits: str, text: str) -> int | None:
    """Read the window after ``direct``; none or -1 means that there is no limit."""
    if not digits:
        return None
    window = int(digits) if _WINDOW.fullmatch(digits) else None
    if window is None or window < -1 or len(digits) > _MAX_WINDOW_LENGTH:
        raise AbortError(
            "window of direct must be a whole number from -1 on with at most "
            f"{_MAX_WINDOW_LENGTH} characters, got {shown(text)}"
        )
    return None if window == -1 else window
