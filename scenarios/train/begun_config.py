"""Settings of a run on a world that is resumed: those of its record, but for where it is done."""

from collections.abc import Callable, Mapping
from dataclasses import Field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from des.base.flags import from_dict
from scenarios.frame.run_folder import RunFolder
from scenarios.train.training_config import PROG, WHERE_RUN


class _OnWorld(Protocol):
    """Settings of a run on a world, a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def network(self) -> str: ...

    @property
    def corrections(self) -> Path | None: ...

    @property
    def kpi(self) -> bool: ...


_Run = TypeVar("_Run", bound=_OnWorld)


def begun_config(
    config: _Run,
    given: frozenset[str],
    folder: RunFolder,
    recorded: Callable[[_Run], Mapping[str, object]],
) -> _Run:
    """Configuration that the run was begun with; given flags must not contradict it.

    Raises
    ------
    UsageError
        If they do, or the record is none of such a run.
    """
    path, record, current = folder.path, folder.read_config(), recorded(config)
    fixed = {name: current[name] for name in given - WHERE_RUN - {"kpi"}}
    folder.require_begun_with(record, fixed, PROG)
    old = from_dict(type(config), record, source=str(folder.config_json))
    corrections = None if old.corrections is None else path / old.corrections
    now: dict[str, Any] = {name: getattr(config, name) for name in WHERE_RUN}
    now |= {"out": path, "resume": True, "kpi": config.kpi if "kpi" in given else old.kpi}
    return replace(old, network=str(path / old.network), corrections=corrections, **now)
