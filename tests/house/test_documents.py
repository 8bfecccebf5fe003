"""What the documents say one can write in a world file can be read."""

import re
from pathlib import Path

import pytest
import yaml

from des import read_topology

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/worlds.md").read_text("utf-8"), re.S)
SECTIONS = [part for block in BLOCKS for part in re.split(r"(?m)^(?=dynamics:|transport:)", block)]


@pytest.mark.parametrize("section", [section for section in SECTIONS if section.strip()])
def test_every_section_in_the_page_on_worlds_can_be_read(section, tmp_path):
    world = yaml.safe_load((ROOT / "des/worlds/east_central_west.yaml").read_text("utf-8"))
    rows = [
        f"0,{link.source},{link.target},{link.bandwidth_bytes_per_s},{link.latency_s}\n"
        for link in read_topology("east_central_west").links
    ]
    head = "time_s,source,target,bandwidth_bytes_per_s,latency_s\n"
    (tmp_path / "trace.csv").write_text(head + "".join(rows), "utf-8")
    path = tmp_path / "world.yaml"
    path.write_text(yaml.safe_dump(world | yaml.safe_load(section)), "utf-8")

    read = read_topology(str(path))

    assert read.num_domains == 3
    changed = next(iter(yaml.safe_load(section)))
    assert getattr(read, changed) is not None
    assert changed in ("dynamics", "transport")


def test_the_page_on_worlds_shows_every_kind_of_law():
    kinds = set(re.findall(r"kind: (\w+)", "".join(SECTIONS)))
    assert kinds == {"uniform", "ornstein_uhlenbeck", "markov", "replay", "product"}
