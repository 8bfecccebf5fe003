"""Runtimes of trainers: when they post receives, and what their messages wait for."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from des.base.checks import require_one_of

Receives = Literal["first", "as_needed", "lowered", "stock"]
SendersWait = Literal["end", "step", "each"]
RuntimeConnections = Literal["shared", "split"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Habits of the program that trains, which passes over a program's operations express.

    Without ``rendezvous`` messages leave when they are sent, and the other fields do not apply.

    Attributes
    ----------
    rendezvous
        Whether a message over links leaves only when its receiver has posted the receive and the
        notice of that has come, as with gloo.
    receives
        ``first``: all at the start of an iteration, in the order of the senders. ``as_needed``:
        each where it is waited for. ``lowered``: where torch's lowering of orders puts them.
        ``stock``: as torch does, ``as_needed`` for GPipe and 1F1B whose workers have one stage,
        else ``lowered``, also for 1F1B with a deeper warm-up.
    senders_wait
        When a worker waits until what it has sent is taken: at the ``end`` of the iteration, in
        each ``step`` as torch's GPipe and 1F1B do, or behind ``each`` send. With ``receives``
        ``stock`` a schedule that is lowered waits at the end.
    connections
        ``shared``: one for each pair of domains, on which notices queue behind data of their
        direction. ``split``: notices have one of their own.
    """

    rendezvous: bool = False
    receives: Receives = "first"
    senders_wait: SendersWait = "end"
    connections: RuntimeConnections = "split"

    def __post_init__(self) -> None:
        if not isinstance(self.rendezvous, bool):
            raise ValueError(
                f"transport.runtime: rendezvous must be True or False, got {self.rendezvous!r}"
            )
        for field, kind in (
            ("receives", Receives),
            ("senders_wait", SendersWait),
            ("connections", RuntimeConnections),
        ):
            allowed, value = get_args(kind), getattr(self, field)
            require_one_of("transport.runtime", field, value, allowed)


IDEAL = Runtime()
"""Messages leave when they are sent."""

RUNTIMES: Mapping[str, Runtime] = MappingProxyType(
    {
        "ideal": IDEAL,
        "torch_stock": Runtime(
            rendezvous=True, receives="stock", senders_wait="step", connections="shared"
        ),
        "torch_early": Runtime(rendezvous=True, connections="shared"),
        "reference": Runtime(rendezvous=True),
    }
)
"""Runtimes by name: torch's schedules over gloo, the same with all receives posted first, and that
with connections of their own for notices.
"""


def runtime_named(name: str) -> Runtime:
    """Return a runtime of the table.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    require_one_of("transport.runtime", "preset", name, RUNTIMES)
    return RUNTIMES[name]
