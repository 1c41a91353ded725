"""Ways to damage a file: byte by byte, word by word, and value by value where it is JSON or TOML."""

import copy
import json
import random
from collections.abc import Sequence
from typing import Any

# Bytes that text readers may trip over, in any place.
WORDS = (
    b"", b"\0", b"\n", b"\r", b"\r\n", b"\t", b" ", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xae",
    b"\x1b[2J", b"\x9b", b"'", b'"', b"\\", b"\\u", b"\\ud800", b"\\U00110000", b"<", b">", b"(", b")", b"[", b"]",
    b"{", b"}", b",", b".", b":", b"^^", b"@en", b"_:b", b"#", b"%", b"->", b":-", b"!=", b"?x", b"-1", b"0",
    b"2147483648", b"18446744073709551616", b"9" * 5000, b"1e999", b"nan", b"0x1", b"1_0", b"x" * 300, b"null",
)  # fmt: skip

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 3, 2**31, 2**63, 10**30, 1.5, -0.0, 1e308, "", "x", "\ud800", "\x1b[2J", "../x", "/",
    [], {}, [None], ["x"], [1], [[]], {"x": 1}, {"": {}}, [["x"] * 3],
)  # fmt: skip


def damaged(content: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Return bytes with one to four changes."""
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        here = chance.randrange(len(data) + 1)
        there = min(len(data), here + chance.choice((0, 1, 1, 2, 4, 16, 64)))
        match chance.randrange(8):
            case 0 if here < len(data):
                data[here] ^= 1 << chance.randrange(8)
            case 1 if here < len(data):
                data[here] = chance.randrange(256)
            case 2:
                del data[here:there]
            case 3:
                data[here:there] = chance.choice(WORDS)
            case 4:
                data[here:here] = data[here:there] * chance.choice((1, 2, 50))
            case 5:
                del data[here:]
            case 6:
                other = chance.choice(others)
                start = chance.randrange(len(other) + 1)
                data[here:there] = other[start : start + chance.choice((1, 4, 16, 64))]
            case _:
                data[here:here] = chance.choice(WORDS)
    return bytes(data)


def damaged_json(content: bytes, chance: random.Random) -> bytes:
    """Return a JSON document with one or two values changed, removed or added."""
    document = copy.deepcopy(json.loads(content))
    for _ in range(chance.choice((1, 1, 2))):
        places = list(_places(document))
        if not places:
            break
        holder, key = chance.choice(places)
        match chance.randrange(6):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[chance.choice(("x", "", "../x", "train.txt"))] = holder.pop(key)
            case 2 if len(places) > 1:
                other, where = chance.choice(places)
                holder[key] = copy.deepcopy(other[where])
            case _:
                holder[key] = copy.deepcopy(chance.choice(VALUES))
    return json.dumps(document).encode()


def _places(value: Any) -> Any:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield value, key
        yield from _places(part)
