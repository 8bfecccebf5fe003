"""Subcommands about placement: what they print and refuse."""

import dataclasses
import json
import re
from pathlib import Path

import pytest
from command_output import assert_refused, examples_of, help_of

from scenarios.devices import compare, group, place
from scenarios.devices.command import main

CUBE = ("--simulate", "hybrid_cube_mesh")
SERVERS = """\
servers:
  - {name: n0, simulate: dgx-h100, levels: {zone: z, rack: rack-1}, free: [0, 1, 2, 3]}
  - {name: n1, simulate: dgx-h100, levels: {zone: z, rack: rack-1}}
  - {name: n2, simulate: dgx-h100, levels: {zone: z, rack: rack-2}}
  - {name: n3, simulate: dgx-h100, levels: {zone: z, rack: rack-2}}
"""


def said(capsys, *argv):
    """Run a subcommand and return what it prints as JSON."""
    assert main([*argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_place_prints_gpus_reason_and_figures(capsys):
    assert main(["place", *CUBE, "--gpus", "4", "--all"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "GPUs 0,1,2,3 of hybrid_cube_mesh (exact)"
    assert "no set of the 8 free has more" in lines[1]
    assert "NVLinks inside                 9" in lines
    assert "the GPUs' model is not known: times are by NCCL's figures" in lines[-4]
    assert lines[-3:] == ["sets with the most NVLinks inside: 2", "  0,1,2,3", "  4,5,6,7"]


def test_place_in_json_has_every_part(capsys):
    found = said(capsys, "place", *CUBE, "--gpus", "2", "--free", "0,1,4,6", "--all")

    assert found["gpus"] == [0, 4]
    assert found["score"]["nvlinks"] == 2
    assert found["best_sets_by_nvlink_sum"] == [[0, 4]]
    assert found["is_exact"] is True
    assert found["all_reduce_s"] > 0


def test_the_model_of_the_gpus_gives_other_times(capsys):
    flags = ("group", *CUBE, "--size", "2")

    plain = said(capsys, *flags)["all_reduce_s"]
    modelled = said(capsys, *flags, "--gpu", "v100_32")["all_reduce_s"]
    assert modelled[0] != plain[0]
    assert (
        said(capsys, "group", "--simulate", "dgx-1-v100", "--size", "2")["all_reduce_s"] == modelled
    )
    wrong = (*flags, "--gpu", "v99")
    assert_refused(
        main, wrong, "GPU model must be one of .* got v99", capsys, unwritten=Path("v99")
    )


def test_place_by_time_and_policy(capsys):
    found = said(capsys, "place", *CUBE, "--gpus", "2", "--by", "time", "--policy", "single-numa")

    assert found["num_nodes"] == 1
    assert found["why"].startswith("all-reduce in ")


def test_place_names_the_faster_set_where_more_nvlinks_are_slower(capsys):
    """0-2-3-4 has 7 NVLinks, but two hops of its ring go over the processors."""
    flags = ("place", "--simulate", "dgx-1-v100", "--gpus", "4", "--free", "0,2,3,4,5,7")

    assert main(list(flags)) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("GPUs 0,2,3,4 of")
    assert re.search(r"^faster by prediction: 0,3,4,7, [0-9.]+ ms \(--by time\)$", shown, re.M)
    assert said(capsys, *flags)["fastest"]["gpus"] == [0, 3, 4, 7]
    assert said(capsys, *flags, "--by", "time")["gpus"] == [0, 3, 4, 7]


def test_long_lists_of_sets_are_cut_and_say_so(capsys):
    assert main(["place", "--simulate", "nvswitch", "--gpus", "4", "--all"]) == 0

    assert capsys.readouterr().out.endswith("  (30 more, which --json lists)\n")


def test_place_on_servers_of_a_list(tmp_path, capsys):
    path = tmp_path / "servers.yaml"
    path.write_text(SERVERS, "utf-8")

    found = said(capsys, "place", "--servers-file", str(path), "--gpus", "16", "--gpu", "h100")
    assert found["servers"] == ["n2", "n3"]
    assert (found["level"], found["unit"]) == ("rack", "rack-2")
    assert found["iteration_s"] > 0
    flags = ("--gpus", "4", "--kind", "mixed", "--mix", "4:2,8", "--parallelism", "2x2x1")
    assert main(["place", "--servers-file", str(path), *flags, "--gpu", "h100"]) == 0
    shown = capsys.readouterr().out
    assert "n0      0,1,2,3" in shown
    assert "quality" in shown


def test_place_on_nodes_of_a_cluster(tmp_path, capsys):
    path = tmp_path / "topology.conf"
    path.write_text(
        "SwitchName=s0 Nodes=n[0-3]\nSwitchName=s1 Nodes=n[4-7]\nSwitchName=s2 Switches=s[0-1]\n",
        "utf-8",
    )
    flags = ("place", "--cluster", str(path), "--simulate", "dgx-h100", "--gpus", "32")

    assert said(capsys, *flags)["servers"] == ["n0", "n1", "n2", "n3"]
    found = said(capsys, *flags, "--taken", "n[0-1]", "--data-locality", "n5")
    assert found["servers"] == ["n4", "n5", "n6", "n7"]
    assert (found["level"], found["unit"]) == ("leaf", "s1")
    wrong = (*flags, "--taken", "n9")
    assert_refused(main, wrong, "--taken: .* got 'n9'", capsys, unwritten=tmp_path / "out")


def test_group_prints_every_group(capsys):
    assert main(["group", *CUBE, "--size", "2", "--free", "0,1,2,3,4"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "2 groups of 2 GPUs of hybrid_cube_mesh (exact), 4 NVLinks inside, worst group 2; "
        "left over: 4"
    )
    assert [line.split()[:2] for line in lines[2:-1]] == [["0,3", "2"], ["1,2", "2"]]
    assert said(capsys, "group", *CUBE, "--size", "4")["groups"] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_compare_prints_a_row_for_each_rule_and_writes_its_table_and_picture(tmp_path, capsys):
    out = tmp_path / "out"
    flags = ("--gpus", "4", "--free", "0,2,3,4,5,7", "--draws", "5")
    assert main(["compare", *CUBE, *flags, "--out", str(out)]) == 0

    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:-1]]
    rules = ["exact", "exact_time", "greedy", "first_fit", "random"]
    assert [row[0] for row in rows] == rules
    table = (out / "table.csv").read_text("utf-8").splitlines()
    assert [line.split(",")[0] for line in table[1:]] == rules
    assert (out / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert [each["rule"] for each in said(capsys, "compare", *CUBE, *flags)] == rules


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("place", *CUBE), r"gpus is required \(--gpus\)"),
        (("place", *CUBE, "--gpus", "9"), "num_gpus must be at most its 8 free GPUs, got 9"),
        (("place", *CUBE, "--gpus", "1", "--free", "0,8"), "free must be .* its GPUs, .*; got 8"),
        (("place", *CUBE, "--gpus", "5", "--policy", "single-numa"), ".* met is 4"),
        (("place", *CUBE, "--gpus", "1", "--policy", "luck"), "argument --policy: must be one of"),
        (("place", "--gpus", "1"), "exactly one of --file, --simulate"),
        (
            ("place", "--servers-file", "x.yaml", "--gpus", "1", "--free", "1"),
            "--free must be left out",
        ),
        (("place", "--servers-file", "x.yaml", "--gpus", "1"), "x.yaml: cannot be read"),
        (("group", *CUBE, "--size", "9"), "size of groups must be at most its 8 free GPUs"),
        (("compare", *CUBE, "--gpus", "2", "--mix", "2:x"), "--mix: .* got '2:x'"),
        (("compare", *CUBE, "--gpus", "2", "--mix", "2,2"), "--mix: .* got '2'"),
        (("compare", *CUBE, "--gpus", "9"), "num_gpus must be at most its 8 free GPUs"),
    ],
)
def test_bad_input_is_one_line(argv, message, tmp_path, capsys):
    assert_refused(main, argv, message, capsys, unwritten=tmp_path / "out")


SLURM = """\
SwitchName=s0 Nodes=n[0-1] LinkSpeed=40
SwitchName=s1 Nodes=n[2-3] LinkSpeed=10
SwitchName=s2 Switches=s[0-1] LinkSpeed=5
"""


def placed(capsys, folder, *argv, kind="dgx-1-v100"):
    """Sixteen GPUs on servers of a kind that Slurm's file lists."""
    path = folder / "topology.conf"
    path.write_text(SLURM, "utf-8")
    flags = ("place", "--cluster", str(path), "--simulate", kind, "--gpus", "16")
    return said(capsys, *flags, *argv)


def test_quality_falls_with_the_links_on_the_way_where_these_have_no_bandwidths(tmp_path, capsys):
    near, far = (placed(capsys, tmp_path, "--taken", each) for each in ("n3", "n[1,3]"))

    assert (near["quality"], near["closeness"]) == (1.0, "optimal")
    assert (far["quality"], far["closeness"]) == (0.5, "good")
    assert far["all_reduce_s"] == near["all_reduce_s"]


def test_link_speeds_of_slurm_count_in_the_unit_that_is_given(tmp_path, capsys):
    """Of 5, 10 and 40 Gbit/s: a ring takes as much longer as the slowest of its links."""
    taken = ("n[1,3]", "n[0-1]", "n[2-3]")
    slow, middle, fast = (
        placed(capsys, tmp_path, "--link-speed", "1Gbps", "--taken", each)["all_reduce_s"]
        for each in taken
    )
    assert (slow / fast, middle / fast) == pytest.approx((8.0, 4.0), rel=0.02)


def test_servers_that_lack_the_data_cache_it_from_the_closest_that_has_it(tmp_path, capsys):
    """Of n0 and n2, next to n1, the first takes 1 TB at the 48 GB/s of its cards; n2 over s2."""
    flags = ("--taken", "n[1,3]", "--data-locality", "n1", "--data-size", "1TB")

    assert placed(capsys, tmp_path, *flags)["warm_up_s"] == pytest.approx(1e12 / 48e9)
    slow = placed(capsys, tmp_path, *flags, "--link-speed", "10Gbps")
    assert slow["warm_up_s"] == pytest.approx(1e12 / (50 * 125e6))


@pytest.mark.parametrize(
    ("kind", "argv", "message"),
    [
        ("pcie_two_numa", (), "--cards-per-server must be given"),
        ("pcie_two_numa", ("--cards-per-server", "2"), "--card-bandwidth-bytes-per-s must be"),
        ("dgx-1-v100", ("--data-size", "1TB"), "--data-locality must be given for data"),
        ("dgx-1-v100", ("--data-size", "big", "--data-locality", "n0"), "--data-size "),
    ],
)
def test_figures_that_a_cluster_lacks_are_named_as_flags(kind, argv, message, tmp_path, capsys):
    path = tmp_path / "topology.conf"
    path.write_text(SLURM, "utf-8")
    flags = ("place", "--cluster", str(path), "--simulate", kind, "--gpus", "16", *argv)
    assert_refused(main, flags, message, capsys, unwritten=tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("servers: [{name: a}]", "server a: one of file and simulate must be given"),
        ("servers: [{simulate: dgx-h100}]", r"servers\[0\].name: must be given"),
        ("servers: [{name: a, simulat: x}]", "simulat: unknown key; did you mean 'simulate'"),
        ("servers: [{name: a, simulate: dgx-h100, free: [9]}]", "free GPUs of a must be numbers"),
        ("servers: []", "servers must be at least one, got none"),
        (
            "servers: [{name: a, simulate: pcie-4, levels: {zone: y, rack: r}},"
            " {name: b, simulate: pcie-4, levels: {zone: z, rack: r}}]",
            "server b: rack r must be below the same unit everywhere, got y and z",
        ),
    ],
)
def test_wrong_lists_of_servers_are_refused(text, message, tmp_path, capsys):
    path = tmp_path / "servers.yaml"
    path.write_text(text, "utf-8")
    argv = ("place", "--servers-file", str(path), "--gpus", "8")
    assert_refused(main, argv, message, capsys, unwritten=tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "module"), [("place", place), ("group", group), ("compare", compare)]
)
def test_help_names_every_flag_and_its_examples_can_be_read(name, module, capsys):
    fields = dataclasses.fields(module.Config)
    shown = help_of(lambda argv: main([name, *argv]), capsys, fields=fields)

    assert examples_of(shown, "scenarios.devices")
    known = {f"--{field.name.replace('_', '-')}" for field in fields}
    for arguments in examples_of(shown, "scenarios.devices"):
        assert arguments[0] == name
        assert {each for each in arguments if each.startswith("--")} <= known
