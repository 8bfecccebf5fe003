"""The second process of a first decision, and the kernels by which a cold cache is known."""

from agents.answer import policies_ahead
from agents.decide import KERNELS, main
from des.base.jit import is_cached


def test_a_decision_fills_the_cache_by_which_a_second_process_is_left_out(capsys):
    policies_ahead.main()
    flags = ["--network", policies_ahead.NETWORK, "--trainer", "ideal", "--deciders", "search"]
    assert main(flags) == 0

    assert all(is_cached(module, function) for module, function in KERNELS.items())
