"""Files of more domains than a world may have are refused before anything is made of them."""

import json

import pytest

from des import read_topology


@pytest.mark.parametrize(
    ("name", "content", "field"),
    [
        ("a.yaml", {"topology": {"domains": [{"name": "d"}] * 2000}}, "topology.domains"),
        ("a.json", {"topology": "hierarchical", "num_domains": 2000}, "num_domains"),
    ],
)
def test_two_thousand_domains_are_refused_naming_the_limit(name, content, field, tmp_path):
    """JSON is YAML; the other mistakes of the files come later."""
    path = tmp_path / name
    path.write_text(json.dumps(content), encoding="utf-8")

    with pytest.raises(ValueError, match=f"{name}: {field}: must hold at most 1000 domains, got 2"):
        read_topology(path)
