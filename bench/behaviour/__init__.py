"""Hashes of what the commands give: two runs say whether a change of the code changed results.

On one machine, with the recorded reference figures in a folder (astra, published, sailor)::

    python -m bench.behaviour --golden FOLDER --out before.json --keep before
    python -m bench.behaviour --golden FOLDER --against before.json --keep after
    diff -r before after

`--only` takes groups of cases. `--against` without a file compares with baseline.json next to this
module, which holds the hashes of one machine: on another, floating-point results may differ, so
make a baseline of your own first.

Commands run as processes, each in a folder of its own. What differs from run to run (timings,
dates, revisions, paths) is taken out by the rules in `bench.behaviour.rules`. A text has a second
hash, of its numbers alone (``#figures``), and a file of weights one of its tensors alone: where the
first one differs and the second does not, words, names or columns have changed but no figure.
"""
