"""Answers on networks in parts, and where links of the plan in force are gone."""

import json
from dataclasses import replace

import pytest

from agents.decide import main
from des import read_topology
from des.world.files.topology_writer import to_yaml

WORLD = replace(read_topology("east_central_west"), movement=None)
JOB = ("--trainer", "ideal", "--model", "llama2_7b", "--microbatches", "8", "--across-only")


@pytest.fixture
def asked(capsys):
    """Run the command, by search alone, and return its exit code and what it writes."""

    def run(*flags: str):
        searched = ("--max-judged", "500", "--deciders", "search")
        return main([*JOB, *searched, *flags]), *capsys.readouterr()

    return run


def islands(num_pairs: int, tmp_path) -> tuple[str, ...]:
    """Flags of a network of pairs of domains, no link between two pairs; of none: one domain."""
    domains = [
        replace(WORLD.domains[0], name=f"{letter}{pair}")
        for pair in range(max(1, num_pairs))
        for letter in ("AB" if num_pairs else "A")
    ]
    links = tuple(
        replace(WORLD.links[0], source=source, target=target)
        for pair in range(num_pairs)
        for source, target in ((f"A{pair}", f"B{pair}"), (f"B{pair}", f"A{pair}"))
    )
    path = tmp_path / "islands.yaml"
    path.write_text(to_yaml(replace(WORLD, domains=tuple(domains), links=links)), encoding="utf-8")
    return ("--network", str(path))


def test_a_network_in_two_parts_is_planned_in_one_of_them(asked, tmp_path):
    network = islands(2, tmp_path)
    code, out, err = asked(*network, "--json", "--families", "all")
    placement = json.loads(out)["placement"]

    assert (code, err) == (0, "")
    assert len({name[1] for name in placement.replace(" ", "").split("|")}) == 1
    loaded = ("--last", "A0*16,B0*16", "--loads", "A0=0.9,B0=0.9", "--json")
    for more, pair in ((), "0"), (("--restart-only",), "1"):
        (stage, *_) = json.loads(asked(*network, *loaded, *more)[1])["stages"]
        assert stage["domain"][1] == pair


@pytest.mark.parametrize("deciders", ["search", "both"])
def test_a_plan_whose_links_are_gone_is_left_for_one_that_its_layers_reach(
    asked, tmp_path, deciders
):
    cut = (*islands(2, tmp_path), "--last", "A0*32 | A1*32", "--deciders", deciders)
    answer = json.loads(asked(*cut, "--json")[1])
    change = answer["change"]
    page = asked(*cut)[1]

    assert (change["present"], change["steps_until_paid"]) == (None, None)
    assert "no path of links joins" in change["misfit"]
    assert answer["change_s"] > 0.0
    assert "it cannot run: " in page
    assert "paid after" not in page


def test_layers_that_no_links_bring_are_named_unless_storage_has_them(asked, capsys, tmp_path):
    cut = (*islands(2, tmp_path), "--last", "A0*16,A1*16", "--json")
    code, out, err = asked(*cut)

    assert (code, out) == (2, "")
    assert "links must lead from the layers of the plan in force to a plan that fits" in err
    assert json.loads(asked(*cut, "--restart-only")[1])["change"]["present"] is None
    assert main([*JOB, *cut, "--deciders", "hi_ppo"]) == 2
    assert "--last must be a plan from whose domains" in capsys.readouterr().err


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_network_without_links_says_that_no_bandwidth_matters(asked, tmp_path):
    code, out, err = asked(*islands(0, tmp_path), "--families", "all")

    assert (code, err) == (0, "")
    assert out.startswith("Answer: single domain\n")
    assert out.endswith("What would change the answer\n  no bandwidth: the network has no links\n")
