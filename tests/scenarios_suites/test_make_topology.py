"""The command writes files that are the worlds it says, the same bytes every time."""

import dataclasses
import shlex

import numpy as np
import pytest
from command_output import assert_refused, error_of, examples_of, help_of

from des import UniformLaw, read_topology
from des.worlds import WORLDS
from des.worlds.generator import PlaneWorlds
from des.worlds.presets import PRESETS
from scenarios.suites.make_topology import Config, main

TEN = ["--num-domains", "10"]


def made(path, *flags):
    """Run the command and return what it wrote."""
    assert main([*flags, "--out", str(path)]) == 0
    return path.read_text(encoding="utf-8")


def test_the_file_holds_the_drawn_world(tmp_path, capsys):
    made(tmp_path / "world.yaml", *TEN, "--seed", "3")

    law = UniformLaw(bandwidth_fluctuation=0.3, latency_jitter=0.2)
    drawn = PlaneWorlds(num_domains=10, dynamics=law).draw(np.random.default_rng(3))
    assert read_topology(tmp_path / "world.yaml") == drawn
    assert capsys.readouterr().out == (
        f"10 domains, 90 links (each direction one)\nwritten: {tmp_path / 'world.yaml'}\n"
    )


def test_every_flag_reaches_the_world(tmp_path):
    made(
        *(tmp_path / "world.yaml", "--num-domains", "5", "--seed", "1"),
        *("--mean-bandwidth", "10Gbps", "--lowest-latency", "1ms", "--highest-latency", "0.2s"),
        *("--bandwidth-fluctuation", "0.1", "--latency-jitter", "0.05"),
        *("--price-usd-per-gb", "0.05", "--gpu-price-usd-per-hour", "2"),
    )

    worlds = PlaneWorlds(
        num_domains=5,
        mean_bandwidth_bytes_per_s=1.25e9,
        lowest_latency_s=0.001,
        highest_latency_s=0.2,
        mean_price_usd_per_gb=0.05,
        gpu_price_usd_per_hour=2.0,
        dynamics=UniformLaw(bandwidth_fluctuation=0.1, latency_jitter=0.05),
    )
    assert read_topology(tmp_path / "world.yaml") == worlds.draw(np.random.default_rng(1))


def test_the_same_flags_give_the_same_bytes_and_another_seed_others(tmp_path):
    first, again = (made(tmp_path / name, *TEN) for name in ("one.yaml", "two.yaml"))
    other = made(tmp_path / "one.yaml", *TEN, "--seed", "1")

    assert first == again
    assert first != other


def test_the_file_names_the_command_that_makes_it_again(tmp_path):
    flags = ["--num-domains", "4", "--seed", "9", "--price-usd-per-gb", "0.01"]
    text = made(tmp_path / "world.yaml", *flags, "--mean-bandwidth", "3Gbps")

    comment = "\n".join(line[2:] for line in text.splitlines() if line.startswith("#"))
    _, command = comment.split("Written by:\n")
    python, module, name, *spelled = shlex.split(command.replace("\\\n", " "))
    assert (python, module, name) == ("python", "-m", "scenarios.make_topology")
    assert made(tmp_path / "again.yaml", *spelled) == text


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_the_shipped_files(name, tmp_path):
    text = made(tmp_path / "world.yaml", "--preset", name)

    assert text == WORLDS[name].read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "one of preset and num_domains must be given, got neither"),
        (["--preset", "aws_like", *TEN], "one of preset and num_domains must be given, got both"),
        (["--preset", "mars"], "preset must be one of aws_like, east_west_hubs; got 'mars'"),
        (["--preset", "aws_like", "--seed", "1"], "preset has no other flags but out, got seed"),
        (["--num-domains", "0"], "generator: num_domains must be a whole number from 1 to 1000"),
        ([*TEN, "--seed", "-1"], "seed must be at least 0, got -1"),
        ([*TEN, "--mean-bandwidth", "5"], "mean_bandwidth must be a bandwidth such as .*; got '5'"),
        ([*TEN, "--mean-bandwidth", "5ms"], "mean_bandwidth unknown unit 'ms', must be a band"),
        ([*TEN, "--mean-bandwidth", "0.5Gbps"], "generator: mean_bandwidth_bytes_per_s must be at"),
        ([*TEN, "--highest-latency", "1ms"], "generator: lowest_latency_s must be at most"),
        ([*TEN, "--lowest-latency=-1ms"], "generator: lowest_latency_s must be finite and not"),
        ([*TEN, "--price-usd-per-gb", "-1"], "generator: mean_price_usd_per_gb must be finite"),
        ([*TEN, "--latency-jitter", "1"], "dynamics: latency_jitter must be at least 0 and below"),
        ([*TEN, "--num-domain", "3"], "unknown argument '--num-domain'"),
    ],
)
def test_bad_flags_are_refused_in_one_line_and_nothing_is_written(flags, message, tmp_path, capsys):
    out = tmp_path / "world.yaml"
    assert_refused(main, [*flags, "--out", str(out)], message, capsys, unwritten=out)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("world.json", "a topology must be written to a file ending in .yaml or .yml"),
        ("none/world.json", "a topology must be written to a file ending in .yaml or .yml"),
        ("file/world.yaml", "file/world.yaml: cannot be written: Not a directory"),
        ("folder.yaml", "folder.yaml: cannot be written: Is a directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_one_error(out, message, tmp_path, capsys):
    (tmp_path / "file").touch()
    (tmp_path / "folder.yaml").mkdir()

    assert message in error_of(main, [*TEN, "--out", str(tmp_path / out)], capsys)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.yaml"]


def test_a_missing_folder_is_made(tmp_path):
    text = made(tmp_path / "worlds" / "new" / "world.yaml", *TEN)

    assert made(tmp_path / "world.yaml", *TEN) == text


def test_a_file_must_be_named(capsys):
    assert "out is required (--out)" in error_of(main, TEN, capsys)


def test_help_explains_every_flag_and_its_examples_run(tmp_path, monkeypatch, capsys):
    examples = examples_of(
        help_of(main, capsys, fields=dataclasses.fields(Config)), "scenarios.make_topology"
    )
    monkeypatch.chdir(tmp_path)

    assert len(examples) == 3
    for example in examples:
        assert main(example) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("east_west_hubs.yaml", "priced.yaml", "ten.yaml"),
    ]
