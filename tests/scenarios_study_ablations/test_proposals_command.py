"""The comparison of learned proposals of plans with random and nearest-neighbour ones."""

import pandas as pd
import pytest
from command_output import PAPER, assert_measurement_is_written

from scenarios.study.ablations.proposals import main


def test_every_method_is_judged_on_every_network(tmp_path, capsys):
    out = tmp_path / "proposals"
    flags = ["--num-domains", "10,16", "--num-worlds", "2", "--proposals", "8"]
    assert main(["--out", str(out), *flags, *PAPER]) == 0
    printed = capsys.readouterr().out
    assert "learned against nearest neighbours: " in printed
    rows = pd.read_csv(out / "proposals.csv")
    methods, seeds, networks = 4, 3, 4
    assert len(rows) == methods * seeds * networks
    assert rows.groupby(["method", "seed"])["network"].nunique().eq(networks).all()
    assert (rows["excess"] >= 0.0).all()
    assert_measurement_is_written(out, rows="proposals", figure="methods")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--proposals", "0"], "proposals must be a whole number"),
        (["--num-domains", "11"], "num_domains must be some of"),
        (["--checkpoint", "agents/checkpoints/local-0.pt"], "kind must be 'plan_policy'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, capsys, flags, message):
    assert main(["--out", str(tmp_path / "proposals"), *flags]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
