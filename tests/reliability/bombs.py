"""Small files that ask for much: memory, time, depth, or a very long message."""

import io
import pickle
import sqlite3
import struct
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import torch
from mutations import archived

Bomb = Callable[[bytes], bytes]
"""Makes a bad file, of the valid one where it needs that."""


def _laughs(sample: bytes) -> bytes:
    """Aliases of aliases: 10 to the 9th values in some hundred characters."""
    lines = ["a0: &a0 [lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    return "\n".join([*lines, "dynamics: *a9", ""]).encode()


def _merges(sample: bytes) -> bytes:
    lines = ["m0: &m0 {a: 1}"]
    lines += [f"m{i}: &m{i} {{<<: [*m{i - 1}, *m{i - 1}]}}" for i in range(1, 28)]
    return "\n".join(lines).encode()


def _keys_under(name: str) -> Bomb:
    return lambda sample: (
        sample + f"\n{name}:\n".encode() + b"".join(b"  k%d: 1\n" % i for i in range(20_000))
    )


YAML_BOMBS: dict[str, Bomb] = {
    "aliases of aliases": _laughs,
    "aliases under dynamics": lambda sample: sample + b"\n" + _laughs(sample),
    "merges of merges": _merges,
    "an alias of itself": lambda _: b"dynamics: &a [*a]\n",
    "lists in lists": lambda _: b"[" * 200_000,
    "mappings in mappings": lambda _: b"{a: " * 100_000,
    "deep by lines": lambda _: b"".join(b" " * i + b"a:\n" for i in range(1500)),
    "20,000 keys": _keys_under("dynamics"),
    "20,000 keys at the top": lambda _: b"".join(b"k%d: 1\n" % i for i in range(20_000)),
    "a key of 400 kB": lambda sample: sample + b"\n" + b"k" * 400_000 + b": 1\n",
    "a quoted key of 400 kB": lambda sample: sample + b'\n"' + b"k" * 400_000 + b'": 1\n',
    "a value of 400 kB": lambda _: b"topology: " + b"v" * 400_000,
    "digits": lambda _: b"steps: " + b"9" * 100_000,
    "sixties": lambda _: b"steps: 1" + b":59" * 200_000,
    "a million short values": lambda _: b"[" + b"1," * 1_000_000 + b"1]",
    "question marks": lambda _: b"? " * 20_000,
    "tags": lambda _: b"a: !!bool maybe\nb: !!timestamp x\n",
    "a key that is a list": lambda _: b"? [1, 2]\n: 3\n",
    "many documents": lambda _: b"--- a\n" * 50_000,
}
JSON_BOMBS: dict[str, Bomb] = {
    "lists in lists": lambda _: b"[" * 200_000,
    "objects in objects": lambda _: b'{"a":' * 100_000,
    "a million objects": lambda _: b"[" + b"{}," * 1_000_000 + b"{}]",
    "two million numbers": lambda _: b"[" + b"1," * 2_000_000 + b"1]",
    "the same key 20,000 times": lambda _: b"{" + b'"a":1,' * 20_000 + b'"a":1}',
    "a key of 400 kB": lambda _: b'{"' + b"k" * 400_000 + b'": 1}',
    "20,000 keys": lambda _: b"{" + b",".join(b'"k%d": {"a": 1}' % i for i in range(20_000)) + b"}",
    "digits": lambda _: b'{"config": ' + b"9" * 100_000 + b"}",
    "an exponent": lambda _: b'{"config": 1e999999999}',
    "half of a pair": lambda _: b'{"config": "\\ud800"}',
}
CSV_BOMBS: dict[str, Bomb] = {
    "100,000 columns": lambda _: b",".join(b"c%d" % i for i in range(100_000)) + b"\n",
    "a cell of 1 MB": lambda sample: sample.splitlines(keepends=True)[0] + b"a" * 1_000_000,
    "an open quote": lambda sample: sample + b'"' + b"a,\n" * 300_000,
    "200,000 empty lines": lambda sample: sample + b"\n" * 200_000,
    "its rows 20,000 times": lambda sample: sample + sample.splitlines(keepends=True)[-1] * 20_000,
    "no bytes": lambda _: b"",
    "zeros": lambda _: b"\x00" * 100_000,
}
TEXT_BOMBS: dict[str, Bomb] = {
    "hosts without end": lambda _: (
        b"SwitchName=s Nodes=n[0-999999999]\nBlockName=b Nodes=n[0-99999]m[0-99999]\n"
    ),
    "a line of 1 MB": lambda _: b"SwitchName=" + b"s" * 1_000_000,
    "100,000 lines": lambda sample: sample + b"GPU0\t X \n" * 100_000,
    "brackets": lambda _: b"SwitchName=s Nodes=" + b"n[" * 50_000,
}
TRACE_BOMBS: dict[str, Bomb] = {
    "a length of 4 GB": lambda sample: sample + b"\xff\xff\xff\xff\x0f",
    "100,000 empty nodes": lambda sample: sample + b"\x00" * 100_000,
    "a number without end": lambda sample: sample + b"\x05\x08" + b"\xff" * 4,
    "groups in groups": lambda sample: sample + b"\xfe\xff\x01" + b"\x0b" * 32_766,
}


def _entries(sample: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(sample)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _with_plan(plan: Callable[[bytes], bytes]) -> Bomb:
    def made(sample: bytes) -> bytes:
        entries = _entries(sample)
        name = next(each for each in entries if each.endswith("data.pkl"))
        return archived(entries | {name: plan(entries[name])})

    return made


def _saved(payload: dict[str, object]) -> bytes:
    content = {"format": "eastwest-checkpoint", "version": 2, "payload": payload}
    target = io.BytesIO()
    torch.save(content, target)
    return target.getvalue()


def _wide(sample: bytes) -> bytes:
    """A valid file whose networks would have a million units."""
    content = torch.load(io.BytesIO(sample), weights_only=True)
    parts = [content["payload"], content["payload"].get("placement", {})]
    for part in parts:
        for name in ("width", "edge_width", "num_rounds", "hidden_size"):
            if name in part.get("architecture", {}):
                part["architecture"][name] = 4096 if name == "hidden_size" else 1_000_000
    return _saved(content["payload"])


def _shared_twice(depth: int) -> object:
    value: object = [0]
    for _ in range(depth):
        value = [value, value]
    return value


PT_BOMBS: dict[str, Bomb] = {
    "one value 3 billion times": lambda _: _saved({"a": torch.zeros(1).expand(3_200_000_000)}),
    "a view of a view": lambda _: _saved({"a": torch.zeros(2)[:1].expand(10**9, 1)}),
    "lists that share lists": lambda _: _saved({"a": _shared_twice(40)}),
    "lists in lists": lambda _: _saved({"a": _nested(300)}),
    "networks of a million units": _wide,
    "a packed gigabyte": lambda sample: archived(
        _entries(sample) | {"archive/data/9999": b"\0" * 2**26}, zipfile.ZIP_DEFLATED
    ),
    "a far place": _with_plan(lambda plan: plan[:2] + b"Nr" + struct.pack("<I", 2**31) + plan[2:]),
    "a long text": _with_plan(lambda _: b"\x80\x02X" + struct.pack("<I", 2**31) + b"."),
    "bytes of 8 exabytes": _with_plan(lambda _: b"\x80\x05\x96" + struct.pack("<Q", 2**62) + b"."),
    "a call": _with_plan(lambda _: pickle.dumps(print)),
    "code": _with_plan(lambda _: b"cos\nsystem\n(S'true'\ntR."),
    "no plan": lambda _: archived({"archive/version": b"3"}),
    "the entries of one twice": lambda sample: sample + sample,
}


def _nested(depth: int) -> object:
    value: object = []
    for _ in range(depth):
        value = [value]
    return value


def _sql(*commands: str) -> Bomb:
    def made(sample: bytes) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "runs.sqlite"
            path.write_bytes(sample)
            connection = sqlite3.connect(path)
            for command in commands:
                connection.execute(command)
            connection.commit()
            connection.close()
            return path.read_bytes()

    return made


_ANEW = (
    "CREATE TABLE others AS SELECT * FROM runs",
    "DROP TABLE runs",
    "ALTER TABLE others RENAME TO runs",
)
SQLITE_BOMBS: dict[str, Bomb] = {
    "a key that is none": _sql("UPDATE runs SET key = NULL"),
    "numbers for texts": _sql(*_ANEW, "UPDATE runs SET key = 1, measurement = 2, seal = 4"),
    "nothing at all": _sql(*_ANEW, "UPDATE runs SET key = NULL, measurement = NULL, seal = NULL"),
    "bytes for texts": _sql(*_ANEW, "UPDATE runs SET seal = x'ff', key = x'00'"),
    "a column less": _sql("ALTER TABLE runs DROP COLUMN meta"),
    "no table": _sql("DROP TABLE runs"),
    "no text": _sql("UPDATE runs SET measurement = CAST(x'ff' AS TEXT)"),
    "a view without end": _sql(
        "DROP TABLE runs",
        "CREATE VIEW runs AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS key, 'a' AS case_digest, 'b' AS backend, NULL AS aggregation, '1' AS version, "
        "0.0 AS created_s, '{}' AS measurement, '{}' AS meta, 'x' AS seal FROM n",
    ),
    "a cell of 900 MB": _sql(*_ANEW, "DELETE FROM runs", "DROP TABLE runs",
        "CREATE VIEW runs AS SELECT hex(zeroblob(450000000)) AS key, 'a' AS case_digest, 'b' AS "
        "backend, NULL AS aggregation, '1' AS version, 0.0 AS created_s, '{}' AS measurement, "
        "'{}' AS meta, 'x' AS seal"),
}  # fmt: skip

BOMBS: dict[str, dict[str, Bomb]] = {
    "yaml": YAML_BOMBS,
    "yml": YAML_BOMBS,
    "json": JSON_BOMBS,
    "csv": CSV_BOMBS,
    "txt": TEXT_BOMBS,
    "conf": TEXT_BOMBS,
    "et": TRACE_BOMBS,
    "pt": PT_BOMBS,
    "sqlite": SQLITE_BOMBS,
}
