"""Double binary tree: an all-reduce up and down one of two trees over the members.

Both have a root with a single child, which heads a perfect binary tree of the others; members are
numbered in order. In tree 0 the root comes last, in tree 1 first.
"""

from dataclasses import dataclass
from typing import Any

from astra_sim.files.errors import CrashError
from astra_sim.system.phases import PhaseRun


@dataclass(frozen=True, slots=True)
class TreePlace:
    """Neighbours of a member as positions; None where there is none."""

    parent: int | None
    children: tuple[int, ...]


def tree_place(tree: int, num_members: int, position: int) -> TreePlace:
    """Place of a member in a tree.

    Raises
    ------
    CrashError
        If the number of members is not a power of two.

    Examples
    --------
    Of four members, 3 is the root of tree 0, its child 1 has the leaves 0 and 2:

    >>> tree_place(0, 4, 3), tree_place(0, 4, 1)
    (TreePlace(parent=None, children=(1,)), TreePlace(parent=3, children=(0, 2)))
    """
    if num_members < 2 or num_members & (num_members - 1):
        raise CrashError(
            f"doubleBinaryTree: the number of NPUs must be a power of two, got {num_members}"
        )
    shift = tree
    root = 0 if tree else num_members - 1
    head = num_members // 2 - 1 + shift
    if position == root:
        return TreePlace(None, (head,))
    # In order, a node of the perfect tree stands at an odd multiple of its subtree's half, less 1.
    place = position - shift + 1
    half = place & -place
    step = half // 2
    children = (position - step, position + step) if step else ()
    if position == head:
        return TreePlace(root, children)
    return TreePlace(position + half if place // half % 4 == 1 else position - half, children)


class TreeReduction:
    """One chunk phase of one NPU as leaf, inner node or root; messages are the whole data."""

    __slots__ = ("_arrived", "_children", "_moved_up", "_parent", "_run", "_size")

    def __init__(self, run: PhaseRun) -> None:
        members = run.phase.plan.members
        place = tree_place(run.phase.tree, len(members), run.phase.plan.position)
        self._run = run
        self._size = run.num_bytes
        self._parent = None if place.parent is None else members[place.parent]
        self._children = tuple(members[child] for child in place.children)
        self._arrived = 0
        self._moved_up = 0

    def start(self) -> None:
        """Leaves move and send; others wait for their children."""
        if self._children:
            for child in self._children:
                self._receive(child, self._child_arrived)
        else:
            self._move(from_a=True, reduces=False, back=False, done=self._leaf_moved)

    def _leaf_moved(self, _: Any) -> None:
        self._exchange_with_parent(self._leaf_answered)

    def _leaf_answered(self, _: Any) -> None:
        self._move(from_a=False, reduces=False, back=False, done=self._run.end_now)

    def _child_arrived(self, _: Any) -> None:
        self._arrived += 1
        first_of_two = self._parent is not None and self._arrived == 1
        self._move(from_a=False, reduces=True, back=not first_of_two, done=self._child_reduced)

    def _child_reduced(self, _: Any) -> None:
        self._moved_up += 1
        if self._moved_up < len(self._children):
            return
        if self._parent is None:
            self._answer()
        else:
            self._exchange_with_parent(self._inner_answered)

    def _inner_answered(self, _: Any) -> None:
        self._move(from_a=False, reduces=True, back=True, done=self._answer)

    def _answer(self, _: Any = None) -> None:
        for child in self._children:
            self._send(child)
        self._run.end()

    def _exchange_with_parent(self, answered: Any) -> None:
        parent = self._parent
        assert parent is not None
        self._send(parent)
        self._receive(parent, answered)

    def _send(self, target: int) -> None:
        run = self._run
        run.npu.messages.post_send((run.tag, run.npu.rank, target, self._size))

    def _receive(self, source: int, received: Any) -> None:
        run = self._run
        run.npu.messages.post_receive((run.tag, source, run.npu.rank, self._size), received)

    def _move(self, *, from_a: bool, reduces: bool, back: bool, done: Any) -> None:
        npu = self._run.npu
        then = self._reduce if reduces else done
        if npu.bus is None:
            npu.timers.after(npu.settings.endpoint_delay_ns, then, done)
        else:
            npu.bus.move(
                from_a=from_a,
                num_bytes=self._size,
                reduces=reduces,
                back=back,
                done=then,
                argument=done,
            )

    def _reduce(self, done: Any) -> None:
        npu = self._run.npu
        npu.timers.after(npu.settings.reduction_ns(self._size), done)
