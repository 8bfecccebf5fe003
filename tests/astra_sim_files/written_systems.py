"""System files of ASTRA-sim with some content."""

import json
from pathlib import Path


def written(folder: Path, content: object) -> Path:
    path = folder / "system.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path
