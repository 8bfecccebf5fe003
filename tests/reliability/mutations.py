"""Files made of valid ones by chance: damaged, cut, repeated, and with the odd value put in."""

import hashlib
import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from typing import Any

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORD = re.compile(rb"[A-Za-z_]{2,}")
_NUMBERS = (
    *(b"0", b"-1", b"1e999", b"-1e999", b"nan", b".nan", b"NaN", b"Infinity", b".inf", b"1e-320"),
    *(b"99999999999999999999", b"9" * 400, b"9" * 5000, b"2147483648", b"1e308", b"0x10", b"1_0"),
    *(b"null", b"true", b'"1"', b"[]", b"{}", b"1:30:30", b"2001-99-99", b"0.1.2", b"", b"=1+1"),
)
_PIECES = (
    *(b"[", b"]", b"{", b"}", b",", b":", b'"', b"'", b"\n", b"\r", b"\t", b"\x00", b"\x1b[31m"),
    *(b"&a ", b"*a", b"<<: *a", b"!!int x", b"!!bool x", b"!!timestamp x", b"!!python/name:os"),
    *(
        b"- ",
        b"---\n",
        b"? ",
        b"| ",
        b"%TAG",
        b"#",
        b"\xff\xfe",
        b"\xc3",
        "\u202e".encode(),
        b"\\u0000",
    ),
    *(b"=cmd|' /C calc'!A0", b"@", b"-", b"[0-99999999]", b"n[1-5]", b"\x80" * 12, b"a" * 300),
)


def mutated(sample: bytes, rng: random.Random, kind: str) -> bytes:
    """One to four changes of a sample."""
    if kind == "npz" and rng.random() < 0.7:
        return _inside_archive(sample, rng)
    if kind == "safetensors" and rng.random() < 0.7:
        return resealed(sample, lambda header: _change_content(header["__metadata__"], rng))
    content = sample
    for _ in range(rng.randint(1, 4)):
        content = rng.choice(_CHANGES)(content, rng)
    return content


def _place(content: bytes, rng: random.Random) -> int:
    return rng.randrange(len(content) + 1)


def _flipped(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.randint(1, 8) if changed else 0):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: _place(content, rng)]


def _without_part(content: bytes, rng: random.Random) -> bytes:
    start = _place(content, rng)
    return content[:start] + content[start + rng.randint(1, 200) :]


def _repeated_part(content: bytes, rng: random.Random) -> bytes:
    start = _place(content, rng)
    part = content[start : start + rng.randint(1, 200)]
    return content[:start] + part * rng.choice((2, 3, 50)) + content[start:]


def _with_piece(content: bytes, rng: random.Random) -> bytes:
    start = _place(content, rng)
    return content[:start] + rng.choice(_PIECES) + content[start:]


def _other(pattern: re.Pattern[bytes], others: tuple[bytes, ...]) -> Callable[..., bytes]:
    def changed(content: bytes, rng: random.Random) -> bytes:
        found = list(pattern.finditer(content))
        if not found:
            return content
        one = rng.choice(found)
        other = rng.choice(others) if others else rng.choice(found)[0]
        return content[: one.start()] + other + content[one.end() :]

    return changed


def _without_line(content: bytes, rng: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if lines:
        del lines[rng.randrange(len(lines))]
    return b"".join(lines)


def _line_elsewhere(content: bytes, rng: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if lines:
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    return b"".join(lines)


_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_flipped, _cut, _without_part, _repeated_part, _with_piece, _without_line, _line_elsewhere),
    *(_other(_NUMBER, _NUMBERS), _other(_NUMBER, _NUMBERS), _other(_NUMBER, ()), _other(_WORD, ())),
)


def _inside_archive(sample: bytes, rng: random.Random) -> bytes:
    """Change one entry of an archive, whose checksums stay right."""
    with zipfile.ZipFile(io.BytesIO(sample)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    plans = [name for name in entries if name.endswith("data.pkl")] or list(entries)
    name = plans[0] if rng.random() < 0.8 else rng.choice(list(entries))
    changes = (_flipped, _flipped, _cut, _without_part, _repeated_part, _other(_WORD, ()))
    entries[name] = rng.choice(changes)(entries[name], rng)
    return archived(entries)


def _change_content(metadata: dict[str, str], rng: random.Random) -> None:
    content = rng.choice(_CHANGES)(metadata["content"].encode(), rng)
    metadata["content"] = content.decode("utf-8", "replace")


def resealed(sample: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """A checkpoint with another header, whose digest is right."""
    size = int.from_bytes(sample[:8], "little")
    header, body = json.loads(sample[8 : 8 + size]), sample[8 + size :]
    del header["__metadata__"]["sha256"]
    change(header)
    text = json.dumps(header, separators=(",", ":"))
    header["__metadata__"]["sha256"] = hashlib.sha256(text.encode() + body).hexdigest()
    head = json.dumps(header, separators=(",", ":")).encode()
    return len(head).to_bytes(8, "little") + head + body


def archived(entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of entries."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return target.getvalue()
