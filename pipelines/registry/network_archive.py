"""Loads a network from an untrusted torch.export archive (`pt2`) without running any code in it.

torch itself unpickles some members, evaluates shape expressions and guards as Python, and calls what operators are
named. So an archive is read here first, member by member, and torch gets a new one made of what was understood: tensors
as raw bytes, and a graph whose every string is known to be harmless.
"""

from __future__ import annotations

import io
import json
import lzma
import re
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

MOST = 1 << 28  # bytes of an unpacked archive, at most
_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError)  # what unpacking a torn member raises
_DROPPED = re.compile(r"data/sample_inputs/model\.pt")  # pickled, and of no use here
_TENSORS = re.compile(r"data/weights/weight_\d+|data/constants/tensor_\d+")
_MARKS = re.compile(r"archive_format|archive_version|\.data/version|byteorder|\.data/serialization_id")
_TEXTS = re.compile(r"models/model\.json|data/(weights|constants)/model_(weights|constants)_config\.json")
_NAME = re.compile(r"(?!torch\.|math\.|_operator)[\w.]*")
_SPEC = r"type|context|children_spec|null|\[\]|" + "|".join(rf"builtins\.{kind}" for kind in ("tuple", "list", "dict"))
_SIZE = r"L\['\w+'\]\.size\(\)\[\d\]"
_PATTERNS = {
    "target": re.compile(r"torch\.ops\.aten\.(?!from_file)\w+\.\w+"),
    "expr_str": re.compile(r"(?:Symbol\(|Integer\(|Mul\(|Add\(|'\w+'|positive=True|integer=True|-|\d|, |\))*"),
    "guards_code": re.compile(rf"{_SIZE} (?:==|>=|<=) (?:{_SIZE}|\d+)"),
    "torch_version": re.compile(r"[\w.+]*"),
    **dict.fromkeys(("stack_trace", "nn_module_stack", "torch_fn"), re.compile(r"(?s).*")),  # read by people alone
    **dict.fromkeys(
        ("in_spec", "out_spec"),
        re.compile(rf'(?:[][{{}}, :1]|null|"(?:{_SPEC})")*'),
    ),
}


class ArchiveError(ValueError):
    """An archive that cannot be read or holds what no network of Tidecast has; the message says what."""


def load_network(archive: bytes) -> nn.Module:
    """Load a network from the bytes of a torch.export archive (`pt2`), without running any code that it may hold.

    Returns:
        torch.export's module: called with the network's input tensors, it returns the output tensors.

    Raises:
        ArchiveError: the bytes are no such archive, unpack to over `MOST` (2**28) bytes, or hold a member,
            operator, expression or name that no network of Tidecast has.
    """
    import torch

    clean = _understood(archive)
    try:
        module: nn.Module = torch.export.load(io.BytesIO(clean)).module()
    except Exception as error:  # torch raises what its unpacking meets
        raise ArchiveError(f"{len(archive)} bytes are no pt2 archive: {error!r:.200}") from None
    return module


def _understood(archive: bytes) -> bytes:
    """The archive written anew, of what was understood."""
    made = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as found, zipfile.ZipFile(made, "w") as clean:
            members = found.infolist()
            if (size := sum(member.file_size for member in members)) > MOST:
                raise ArchiveError(f"an archive of {size} bytes; at most {MOST} are read")
            for member in members:
                name = member.filename.partition("/")[2]
                clean.writestr(f"archive/{name}", _member(name, found.read(member)))
    except (*_BROKEN, NotImplementedError, RuntimeError, ValueError, RecursionError) as error:
        if isinstance(error, ArchiveError):
            raise
        raise ArchiveError(f"{len(archive)} bytes are no pt2 archive: {error!r:.200}") from None
    return made.getvalue()


def _member(name: str, data: bytes) -> bytes:
    if _DROPPED.fullmatch(name):
        return b""
    if _TEXTS.fullmatch(name):
        _check(json.loads(data), name)
    elif not (_TENSORS.fullmatch(name) or _MARKS.fullmatch(name)):
        raise ArchiveError(f"the archive's member {name!r} is none of a network's. Register the model anew.")
    return data


def _check(value: Any, key: str) -> None:
    """Refuse a string that torch might act on."""
    if isinstance(value, dict):
        if value.get("use_pickle"):
            raise ArchiveError(f"tensor {value.get('path_name')!r} is pickled. Register the model anew.")
        for name, inner in value.items():
            _check(name, "")
            _check(inner, name)
    elif isinstance(value, list):
        for inner in value:
            _check(inner, key)
    elif isinstance(value, str) and not _PATTERNS.get(key, _NAME).fullmatch(value):
        raise ArchiveError(f"{key}={value!r:.80} is none of a network's. Register the model anew.")
