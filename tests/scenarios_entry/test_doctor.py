"""``eastwest doctor``: what is there, and what is missing with the way to get it."""

import json

from scenarios.entry.command import main


def test_every_part_is_in_the_document(capsys):
    assert main(["doctor", "--json"]) == 0
    parts = {one["name"]: one["found"] for one in json.loads(capsys.readouterr().out)["parts"]}

    assert "cores" in parts["Python"]
    assert parts["[train]"].startswith("torch ")
    assert {"kernel cache", "C++ compiler", "ASTRA-sim", "[ns3]", "[ray]", "kubectl"} <= set(parts)


def test_what_is_missing_says_what_it_would_enable(capsys, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("ASTRA_SIM_BIN", raising=False)
    monkeypatch.setattr("des.base.jit.user_cache_folder", lambda: None)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)

    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert [line for line in lines if line.startswith("kubectl ") and "missing; " in line]
    assert [line for line in lines if "every start compiles" in line]
    assert [line for line in lines if line.startswith("ASTRA-sim") and "by our engine" in line]
