"""Show a server: its matrix, its tree, a picture, or all facts as JSON."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from des.base.atomic_write import write_atomically
from des.base.flags import option
from des.base.lazy import lazy_imports
from des.devices.files.matrix_writer import matrix_text
from scenarios.devices.server_facts import facts_of
from scenarios.devices.server_tree import tree_text
from scenarios.devices.sources import ServerFlags, read_source

with lazy_imports(__name__):
    from des.figures import paper
    from scenarios.devices import server_picture

EXAMPLES = """\
examples:
  python -m scenarios.devices show --file topo.txt
  python -m scenarios.devices show --file topo.txt,numactl.txt --json
  python -m scenarios.devices show --simulate dgx-1-v100 --format tree
  python -m scenarios.devices show --simulate dgx-h100 --picture server.svg
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(ServerFlags):
    """Settings of what is shown; the fields are the flags."""

    format: Literal["both", "matrix", "tree"] = option(
        "both", "matrix as nvidia-smi topo -m prints it, tree of NUMA nodes, or both"
    )
    picture: Path | None = option(None, "file for a picture of the matrix, .png or .svg")
    json: bool = option(False, "print all facts as JSON, and nothing else")


def run(config: Config) -> int:
    """Print the server, and write its picture."""
    if config.picture is not None:
        server_picture.check_picture_name(config.picture)
        figure = server_picture.server_figure(read_source(config)[0])
        ending = config.picture.suffix.removeprefix(".")
        write_atomically(config.picture, paper.image_bytes(figure, ending))
    if config.json:
        sys.stdout.write(f"{json.dumps(facts_of(*read_source(config)))}\n")
        return 0
    server, matrix = read_source(config)
    if matrix is not None and matrix.is_pcie_only:
        sys.stderr.write("note: a matrix of topo -mp, which leaves NVLinks out\n")
    texts = {"matrix": matrix_text(server), "tree": tree_text(server)}
    shown = texts.values() if config.format == "both" else [texts[config.format]]
    sys.stdout.write("\n".join(shown))
    return 0
