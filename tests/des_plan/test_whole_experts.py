"""Plans with experts whole on a GPU: how they are written."""

import pytest

from des import Parallelism


def test_whole_experts_are_written_behind_their_degree():
    written = Parallelism.parse("2x4x1c2e16t1")

    assert written == Parallelism(tensor=2, data=4, context=2, expert=16, whole_experts=True)
    assert str(written) == "tensor 2 x data 4 x pipeline 1 x context 2, whole experts over 16"
    assert (written.expert_parts, written.expert_copies) == (16, 1)
    cut = Parallelism.parse("2x4x1c2e4")
    assert (cut.expert_parts, cut.expert_copies) == (8, 2)
    with pytest.raises(ValueError, match="parallelism: must be TENSORxDATAxPIPELINE"):
        Parallelism.parse("2x4x1t1")
