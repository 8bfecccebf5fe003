"""Reading topologies from files: the YAML list of links and the JSON matrices.

Both forms give equal `Topology` values for equal content. Units and formats are known only to the
``topology_*`` modules.
"""

from collections.abc import Callable
from pathlib import Path

from des.base.lazy import lazy_imports
from des.world.topology import Topology
from des.worlds import EXAMPLES, WORLDS

with lazy_imports(__name__):
    import pydantic

    from des.base import strict_forms, text_files
    from des.world.files import topology_json, topology_yaml


def topology_path(name: str | Path) -> Path:
    """Return the file of a shipped world, given by its name, or the path that was given."""
    return (WORLDS | EXAMPLES).get(str(name), Path(name))


def read_topology(name: str | Path) -> Topology:
    """Read a world from a ``.yaml``, ``.yml`` or ``.json`` file, or a shipped one by its name.

    Raises
    ------
    ValueError
        If the file cannot be read or does not describe a world; the message names the file, the
        field, what is allowed and what came.
    """
    path = topology_path(name)
    readers: dict[str, Callable[[str, Path], Topology]] = {
        ".yaml": topology_yaml.from_yaml,
        ".yml": topology_yaml.from_yaml,
        ".json": topology_json.from_json,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ValueError(
            f"{path}: a topology must be a file that ends in {', '.join(readers)}, or one of the "
            f"shipped worlds {', '.join((*WORLDS, *EXAMPLES))}"
        )
    try:
        return reader(text_files.read_text(path, "topology file "), path.parent)
    except pydantic.ValidationError as error:
        raise ValueError(f"{path}: {strict_forms.first_error(error)}") from error
    except ValueError as error:
        message = str(error)
        named = message if message.startswith(f"{path}:") else f"{path}: {message}"
        raise ValueError(named) from error
