"""State of a watch in a file: whole or not at all, and of one job."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from agents.replanning.watch import Watch
from agents.search.search import PlanRequest
from des.base.atomic_write import write_atomically
from des.base.checks import system_errors
from des.base.store_file import seal
from des.base.strict_forms import StrictForm, first_error
from des.base.text_files import read_json

FORMAT = "eastwest-watch"
VERSION = 3


class _StateForm(StrictForm):
    """All of a state; ``seal`` is the digest of the rest."""

    format: str
    version: int
    job: str
    num_changes: int
    pending: dict[str, str] | None
    files: dict[str, str | int]
    watch: dict[str, object]
    seal: str


@dataclass(frozen=True, kw_only=True)
class WatchState:
    """A watch, and how far it has come.

    Attributes
    ----------
    num_changes
        Plans that have come into force so far; it numbers their launch folders.
    pending
        Action and reason of the latest change while its launch files and hook are under way.
    files
        Files that were read, see `scenarios.watch.folder_source.FolderSource`.
    """

    watch: Watch
    num_changes: int = 0
    pending: dict[str, str] | None = None
    files: dict[str, str | int]


def job_digest(request: PlanRequest) -> str:
    """Digest of what a state is for: job, trainer, and names of sites and links."""
    world = request.topology
    names = [one.name for one in world.domains], [str(one) for one in world.links]
    text = repr((request.job, request.trainer.name, request.schedules, names))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write_watch_state(path: Path, state: WatchState) -> None:
    """Write a state so that the file has it, or the former one, whatever happens.

    Raises
    ------
    ValueError
        If it cannot be written.
    """
    content: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "job": job_digest(state.watch.others.request),
        "num_changes": state.num_changes,
        "pending": state.pending,
        "files": state.files,
        "watch": state.watch.plain(),
    }
    content["seal"] = _seal(content)
    with system_errors(f"--state {path}: cannot be written"):
        write_atomically(path, json.dumps(content, allow_nan=False).encode())


def read_watch_state(path: Path, watch: Watch) -> WatchState:
    """Read a state into a watch that has seen nothing; without a file it stays so.

    Raises
    ------
    ValueError
        If the file is torn, was changed, or is that of another job or version.
    """
    if not path.exists():
        return WatchState(watch=watch, files={})
    try:
        form = _StateForm.model_validate(read_json(path))
        content = form.model_dump()
        if (form.format, form.version) != (FORMAT, VERSION):
            raise ValueError(
                f"format and version must be {FORMAT} {VERSION}; got {form.format} {form.version}"
            )
        if (own := job_digest(watch.others.request)) != form.job:
            raise ValueError(
                f"job must be the one of --network, --job and --trainer, {own}; got {form.job}: "
                "give this job a state of its own"
            )
        if content.pop("seal") != _seal(content):
            raise ValueError("seal must be that of the content, which was changed or is torn")
    except ValidationError as error:
        raise ValueError(f"--state {path}: {first_error(error)}") from error
    except ValueError as error:
        said = str(error).removeprefix(f"{path}: ")
        raise ValueError(f"--state {path}: {said}") from error
    try:
        known = watch.with_plain(form.watch)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"--state {path}: watch: must be of this version, got {error}") from error
    return WatchState(
        watch=known,
        num_changes=form.num_changes,
        pending=form.pending,
        files=form.files,
    )


def _seal(content: dict[str, object]) -> str:
    return seal((json.dumps(content, sort_keys=True, allow_nan=False),))
