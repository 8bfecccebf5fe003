"""Flags of the main command: which policy is trained, and what is refused."""

import json

import pytest
import yaml
from command_output import assert_refused, examples_of, help_of

from des.worlds import EAST_CENTRAL_WEST
from scenarios.train.east_west.command import main, policy_of

WORLD = yaml.safe_load(EAST_CENTRAL_WEST.read_text())
SHARED = WORLD | {"transport": {"sharing": "fair"}}
ROW = WORLD | {
    "topology": WORLD["topology"]
    | {"cross_domain_links": WORLD["topology"]["cross_domain_links"][:2]}
}
STORM = WORLD | {"dynamics": {"kind": "storm"}}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--policy", "ppo"], "policy must be one of hi_ppo, flat; got 'ppo'"),
        (["move"], "task must be one of main, flat, placement, moves, .*; got 'move'"),
        (["local", "--worlds", "3"], "east_west_train local: unknown argument '--worlds'"),
        (["flat", "--worlds", "3"], "east_west_train flat: unknown argument '--worlds'"),
        (["placement", "--move-draws", "3"], "train placement: unknown argument '--move-draws'"),
        (["flat", "--policy", "hi_ppo"], "policy must be flat here, got 'hi_ppo'"),
        (["--steps", "5"], "--steps is a flag of --policy flat, got it with --policy hi_ppo"),
        (["--no-pays-bytes", "--policy=flat"], "--pays-bytes is a flag of --policy hi_ppo"),
        (
            ["--profile=x.csv"],
            "--profile must be left out of a training with --policy hi_ppo, whose",
        ),
        (
            ["--extrapolate", "--policy=flat"],
            "--extrapolate must be left out of a training with --policy flat",
        ),
        (["--from", "best"], "from must be one of shipped, scratch; got 'best'"),
        (["--updates", "0"], "updates must be a whole number from 1"),
        (["--samples", "1"], "samples must be at least 2, got 1"),
        (["--seed", "-1"], "seed must be a whole number"),
        (["--dynamics", "storm"], "dynamics must be one of steady, .*; got 'storm'"),
        (["--epoch-s", "30"], r"epoch_s must be at least 10 iterations, .* got 30\.0"),
        (["--model", "llama9"], "model: must be one of .*; got 'llama9'"),
        (["--model", "llama3_405b"], r"at most the 1920\.0 GB of all domains together"),
        (["--num-layers", "1"], "fit"),
        (["--loads", "North=0.5"], "North"),
        (["--calibration-placements", "8"], "must leave more than the 6 factors .* got 8 cases"),
        (["--corrections", "absent.json"], r"absent\.json: corrections file cannot be read"),
        (["--config", "absent.yaml"], r"absent\.yaml: cannot be read"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(flags, message, tmp_path, capsys):
    out = tmp_path / "run"
    assert_refused(main, [*flags, "--out", str(out)], message, capsys, unwritten=out)


@pytest.mark.parametrize(
    ("world", "message"),
    [
        (SHARED, r"must have transport\.sharing fifo, .* --policy flat trains on others"),
        (ROW, "targets and Hi-PPO need a link in each direction between every two domains, 6"),
        (STORM, r"dynamics\.kind"),
    ],
)
def test_worlds_that_cannot_be_trained_on_are_refused(world, message, tmp_path, capsys):
    network, out = tmp_path / "world.yaml", tmp_path / "run"
    network.write_text(yaml.safe_dump(world))
    flags = ["--network", str(network), "--out", str(out)]
    assert_refused(main, flags, message, capsys, unwritten=out)


def test_the_record_of_a_run_or_a_file_of_settings_says_what_is_trained(tmp_path):
    folder, settings = tmp_path / "run", tmp_path / "settings.yaml"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"config": {"policy": "flat"}, "versions": {}}))
    settings.write_text("policy: flat")

    assert policy_of([]) == "hi_ppo"
    assert policy_of(["--resume", "--out", str(folder)]) == "flat"
    assert policy_of(["--config", str(folder / "config.json")]) == "flat"
    assert policy_of([f"--config={settings}"]) == "flat"
    assert policy_of(["--policy", "hi_ppo", "--config", str(settings)]) == "hi_ppo"


def test_the_record_of_a_run_of_before_is_named(tmp_path, capsys):
    (tmp_path / "config.json").write_text(json.dumps({"config": {"steps": 5}, "versions": {}}))

    assert main(["--resume", "--out", str(tmp_path)]) == 2

    shown = capsys.readouterr().err
    assert f"{tmp_path / 'config.json'}: policy must be one of hi_ppo, flat, got none" in shown


def test_help_shows_the_flags_of_hi_ppo_and_how_to_see_those_of_flat(capsys):
    shown = help_of(main, capsys)

    assert "--from" in shown
    assert "--policy flat --help" in " ".join(shown.split())
    assert len(examples_of(shown, "scenarios.east_west_train")) == 4
    with pytest.raises(SystemExit):
        main(["--policy", "flat", "--help"])
    assert "--steps-per-rollout" in capsys.readouterr().out
