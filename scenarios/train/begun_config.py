"""Settings of a run on a world that is resumed: those of its record, but for where it is done."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from des.base.flags import from_dict
from scenarios.frame.run_folder import RunFolder
from scenarios.train.training_config import PROG, WHERE_RUN

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Run = TypeVar("_Run", bound="DataclassInstance")


def begun_config(
    config: _Run,
    given: frozenset[str],
    folder: RunFolder,
    recorded: Callable[[_Run], Mapping[str, object]],
) -> _Run:
    """Configuration, of either policy, that the run was begun with; given flags must not differ.

    Raises
    ------
    UsageError
        If they do, or the record is none of such a run.
    """
    path, record, current = folder.path, folder.read_config(), recorded(config)
    fixed = {name: current[name] for name in given - WHERE_RUN - {"kpi"}}
    folder.require_begun_with(record, fixed, PROG)
    old: Any = from_dict(type(config), record, source=str(folder.config_json))
    corrections = None if old.corrections is None else path / old.corrections
    now = {name: getattr(config, name) for name in WHERE_RUN | (given & {"kpi"})}
    now |= {"network": str(path / old.network), "corrections": corrections}
    begun: _Run = replace(old, **now | {"out": path, "resume": True})
    return begun
