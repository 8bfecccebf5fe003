"""Worth of learning, on gaps chosen by hand."""

from itertools import product

import pandas as pd
import pytest

from scenarios.study.ablations.ablations_page import worth_of

GAPS = {"hi_ppo": 0.01, "untrained": 0.03, "random": 0.02, "neighbours": 0.01}


def frame_of(sizes: tuple[int, ...], **more: float) -> pd.DataFrame:
    """Gaps of four networks of each size under two seeds; those of a network differ by it alone."""
    return pd.DataFrame(
        [
            {
                "network": f"{size}-{network}",
                "num_domains": size,
                "variant": name,
                "seed": seed,
                "gap": gap + 0.1 * network,
            }
            for size, network, seed, (name, gap) in product(
                sizes, range(4), range(2), {**GAPS, **more}.items()
            )
        ]
    )


def test_differences_are_paired_so_what_networks_differ_by_does_not_count():
    found = {one.control: one for one in worth_of(frame_of((10,)))}

    assert {name: one.points.mean for name, one in found.items()} == pytest.approx(
        {"untrained": 2.0, "random": 1.0, "neighbours": 0.0}
    )
    assert {name: one.is_shown for name, one in found.items()} == {
        "untrained": True,
        "random": True,
        "neighbours": False,
    }
    assert str(found["random"]).startswith("K = 10, learned placements against random: 1.00 ± 0.00")
    assert str(found["neighbours"]).endswith("no gain is shown")


def test_several_sizes_are_told_apart_and_together():
    found = worth_of(frame_of((4, 10)))

    assert [one.num_domains for one in found[::3]] == [4, 10, None]
    assert str(found[-1]).startswith("all sizes, ")


def test_a_network_on_which_a_plan_does_not_fit_is_left_out():
    frame = frame_of((10,))
    is_misfit = (frame["network"] == "10-0") & (frame["variant"] == "random") & (frame["seed"] == 1)
    is_far = (frame["network"] == "10-0") & (frame["variant"] == "random") & (frame["seed"] == 0)
    gaps = frame["gap"].mask(is_misfit).mask(is_far, 9.0)

    found = {one.control: one.points.mean for one in worth_of(frame.assign(gap=gaps))}

    assert found["random"] == pytest.approx(1.0)
