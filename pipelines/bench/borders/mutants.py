"""Wrong inputs from right ones: bytes and trees of values with seeded damage."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import yaml

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**400, 0.0, -0.0, 0.5, -1e308, 1e308, 1e-320, float("nan"),
    float("inf"), "", " ", "0", "-1", "1e999", "nan", "null", "yes", "2026-01-01", "../../etc/passwd", "a/b", "a\0b",
    "x" * 300, "größe", "\U0001f600", "\u202e", [], {}, [[]], [None], {"": None}, [0] * 300,
)  # fmt: skip
"""Values that somebody may send where another is expected."""
_BYTES = (b"\0", b"\xff", b"\xc3", b"{", b"}", b"[", b'"', b"\\u", b"\\ud800", b"-", b"e9", b"9" * 40, b"\n", b"\r\n",
          b",", b":", b"&a", b"*a", b"!!python/object", b"%", b"#", b"=", b"..", b"2026-13-45",
          b"!!bool x", b"0x_")  # fmt: skip
_MOST_EDITS = 3


def make_mutants(form: str, samples: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Yield damaged copies of right inputs; the same seed makes the same ones.

    Every other one of JSON, YAML or HTTP has one to three values of its tree changed, the others of their bytes. The
    tree of a request has its method, path, version, headers and body, which is JSON.

    Args:
        form: "json", "yaml", "http" or "bytes".
        samples: right inputs.
        count: how many to make.
        seed: of the draw.
    """
    chance, written = random.Random(seed), _FORMS.get(form)
    for number in range(count):
        raw = chance.choice(samples)
        if written is not None and number % 2:
            read, write = written
            tree = read(raw)
            for _ in range(chance.randint(1, _MOST_EDITS)):
                tree = _changed(tree, chance)
            yield write(tree)
        else:
            for _ in range(chance.randint(1, _MOST_EDITS)):
                raw = _damaged(raw, samples, chance)
            yield raw


def _dump_yaml(tree: Any) -> bytes:
    written: str = yaml.dump(tree, allow_unicode=True)
    return written.encode("utf-8", "surrogatepass")


def _read_request(raw: bytes) -> dict[str, Any]:
    head, _, body = raw.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    method, path, version = line.split(" ")
    headers = dict(field.split(": ", 1) for field in fields)
    headers.pop("Content-Length", None)  # of the body that is sent in the end
    return {
        "method": method, "path": path, "version": version, "headers": headers,
        "body": json.loads(body) if body else None,
    }  # fmt: skip


def _write_request(tree: Any) -> bytes:
    """Write what can be written of it: a part that is gone is left out, one of another kind stands as Python's text."""
    parts = tree if isinstance(tree, dict) else {"method": tree}
    fields = parts.get("headers")
    named = fields if isinstance(fields, dict) else {"x": fields}
    body = b"" if parts.get("body") is None else json.dumps(parts["body"]).encode()
    line = " ".join(str(parts[name]) for name in ("method", "path", "version") if name in parts)
    told = {**named, "Content-Length": len(body)} if body else named
    head = "\r\n".join([line, *(f"{name}: {value}" for name, value in told.items())])
    return head.encode("utf-8", "surrogatepass") + b"\r\n\r\n" + body


_FORMS: dict[str, tuple[Callable[[bytes], Any], Callable[[Any], bytes]]] = {
    "json": (json.loads, lambda tree: json.dumps(tree).encode()),
    "yaml": (yaml.safe_load, _dump_yaml),
    "http": (_read_request, _write_request),
}


def _damaged(raw: bytes, samples: Sequence[bytes], chance: random.Random) -> bytes:
    """One edit of the bytes: flipped, cut, doubled, put in, or a part of another input in place of one."""
    at = chance.randint(0, len(raw))
    to = min(len(raw), at + chance.randint(0, 16))
    edits: tuple[Callable[[], bytes], ...] = (
        lambda: raw[:at] + bytes(byte ^ 1 << chance.randrange(8) for byte in raw[at:to][:1]) + raw[min(to, at + 1) :],
        lambda: raw[:at],
        lambda: raw[:at] + raw[to:],
        lambda: raw[:to] + raw[at:],
        lambda: raw[:at] + chance.choice(_BYTES) + raw[at:],
        lambda: raw[:at] + chance.choice(_BYTES) + raw[to:],
        lambda: raw[:at] + _part(chance.choice(samples), chance) + raw[to:],
    )
    return chance.choice(edits)()


def _part(raw: bytes, chance: random.Random) -> bytes:
    at = chance.randint(0, len(raw))
    return raw[at : at + chance.randint(0, 64)]


def _changed(tree: Any, chance: random.Random) -> Any:
    """One edit of a tree: a value that is odd or from elsewhere in it, a key that is gone, new, or another's."""
    places = list(_places(tree))
    if not places:
        return chance.choice(ODD)
    path = chance.choice(places)
    edits: list[Callable[[Any, Any], None]] = [
        lambda holder, name: holder.__setitem__(name, chance.choice(ODD)),
        lambda holder, name: holder.__setitem__(name, _value(tree, chance.choice(places))),
        lambda holder, name: holder.__delitem__(name),
        lambda holder, name: _add(holder, chance),
    ]
    copy = json.loads(json.dumps(tree, default=str))  # of a tree that was read: no cycles, and small
    holder = _value(copy, path[:-1])
    chance.choice(edits)(holder, path[-1])
    return copy


def _add(holder: Any, chance: random.Random) -> None:
    if isinstance(holder, list):
        holder.append(chance.choice(ODD))
    else:
        holder[chance.choice(("", "schema", "x", "job", "max", *map(str, holder)))] = chance.choice(ODD)


def _places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for name, value in items:
        yield (*path, name)
        yield from _places(value, (*path, name))


def _value(tree: Any, path: tuple[Any, ...]) -> Any:
    for name in path:
        tree = tree[name]
    return tree
