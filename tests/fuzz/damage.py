"""Damage to valid files, each decided by a seed alone: bytes, JSON, TOML, tensors, vocabularies, and files as such."""

import json
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman.run.checkpoint_files import state_digest

Bytes = Callable[[bytes, random.Random], bytes]

DEEP = 20_000
# JSON as text, because Python would refuse to write some of it.
HOSTILE_JSON = (
    *("null", "true", "-1", "0", "1.5", "NaN", "Infinity", "-Infinity", "1e999", "1" * 30, "-" + "9" * 30, "7" * 5_000),
    *(
        '""',
        '"x"',
        '"\\u0000"',
        '"\\ud800"',
        '"../../etc/passwd"',
        '"/etc/passwd"',
        '"..\\n"',
        '"' + "y" * 10_000 + '"',
    ),
    *("[]", "{}", "[1]", '{"a": 1}', "[[1, 2], [3]]", "[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP),
    *("4294967296", "9223372036854775807", "18446744073709551616", "1000000000000", "1e308", "5e-324"),
)
HOSTILE_TOML = (
    *(
        "true",
        "-1",
        "0",
        "1.5",
        "nan",
        "inf",
        "-inf",
        "1e999",
        "1" * 30,
        "7" * 5_000,
        "0x" + "f" * 4_000,
        "1000000000000",
    ),
    *('""', '"x"', '"\\u0000"', '"../../etc/passwd"', '"' + "y" * 10_000 + '"', '"""a\nb"""', "1979-05-27T07:32:00Z"),
    *(
        "[]",
        "{}",
        "[1]",
        "{a = 1}",
        "[[1, 2], [3]]",
        "[" * DEEP + "]" * DEEP,
        "",
        "07:32:00",
        "[nan]",
        "[{a = {b = 1}}]",
    ),
)
_HERE = "a place for a hostile value"


def damage_file(path: Path, draw: random.Random) -> None:
    """Damage one file where it lies: what is in it, or now and then the file itself."""
    if draw.random() < 0.05:
        _damage_entry(path, draw)
        return
    kinds: dict[str, Bytes] = {
        ".json": damage_json,
        ".jsonl": damage_lines,
        ".toml": damage_toml,
        ".safetensors": damage_tensors,
        ".model": damage_vocab,
    }
    by_format = kinds.get(path.suffix)
    change = by_format if by_format is not None and draw.random() < 0.6 else damage_bytes
    data = change(path.read_bytes(), draw)
    path.write_bytes(_sealed(data) if path.name == "state.json" and draw.random() < 0.8 else data)


def _damage_entry(path: Path, draw: random.Random) -> None:
    """Gone, a folder, empty, or a link: to nowhere, to itself, to a file elsewhere."""
    data = path.read_bytes()
    path.unlink()
    kind = draw.randrange(6)
    if kind == 1:
        path.mkdir()
    elif kind == 2:
        path.touch()
    elif kind > 2:
        elsewhere = path.parent.parent / f"{path.parent.name}.elsewhere"
        elsewhere.write_bytes(data)
        path.symlink_to(("missing", path.name, elsewhere)[kind - 3])


def remove(path: Path) -> None:
    """Whatever it is."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def damage_bytes(data: bytes, draw: random.Random) -> bytes:
    """One to three changes that know no format."""
    changes: tuple[Bytes, ...] = (
        *(_truncate, _flip, _flip, _insert, _delete, _duplicate, _swap),
        *(_invalid_text, _nul, _byte_order_mark, _carriage_returns, _long_line, _nothing_left),
    )
    for _ in range(draw.randint(1, 3)):
        data = draw.choice(changes)(data, draw)
    return data


def _place(data: bytes, draw: random.Random) -> int:
    return draw.randrange(len(data) + 1)


def _truncate(data: bytes, draw: random.Random) -> bytes:
    return data[: _place(data, draw)]


def _flip(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.randint(1, 8) if changed else 0):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _insert(data: bytes, draw: random.Random) -> bytes:
    at = _place(data, draw)
    return data[:at] + draw.randbytes(draw.randint(1, 40)) + data[at:]


def _delete(data: bytes, draw: random.Random) -> bytes:
    at = _place(data, draw)
    return data[:at] + data[at + draw.randint(1, 40) :]


def _duplicate(data: bytes, draw: random.Random) -> bytes:
    first, last = sorted((_place(data, draw), _place(data, draw)))
    return data[:last] + data[first : first + 5_000] + data[last:]


def _swap(data: bytes, draw: random.Random) -> bytes:
    at = _place(data, draw)
    return data[at:] + data[:at]


def _invalid_text(data: bytes, draw: random.Random) -> bytes:
    at = _place(data, draw)
    return (
        data[:at] + draw.choice((b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x80")) + data[at:]
    )


def _nul(data: bytes, draw: random.Random) -> bytes:
    at = _place(data, draw)
    return data[:at] + bytes(draw.randint(1, 5)) + data[at:]


def _byte_order_mark(data: bytes, draw: random.Random) -> bytes:
    return draw.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")) + data


def _carriage_returns(data: bytes, draw: random.Random) -> bytes:
    return data.replace(b"\n", draw.choice((b"\r\n", b"\r", b"\n\n", b"\xe2\x80\xa8")))


def _long_line(data: bytes, draw: random.Random) -> bytes:
    at = _place(data, draw)
    return data[:at] + draw.choice((b"x", b" ", b"a b", b"\xc3\xa4", b"<")) * draw.choice((5_000, 60_000)) + data[at:]


def _nothing_left(data: bytes, draw: random.Random) -> bytes:
    return draw.choice((b"", b"\n", b" ", b"\x00", b"{}", b"[]", b"null"))


def damage_json(data: bytes, draw: random.Random) -> bytes:
    """One value of another kind, one key missing, one too many, or one twice."""
    values = json.loads(data)
    owner, key = _any_place(values, draw)
    kind = draw.randrange(6)
    if owner is None:
        values = _HERE
    elif kind == 0:
        del owner[key]
    elif kind == 1 and isinstance(owner, dict):
        owner["an extra key"] = _HERE
    else:
        owner[key] = _HERE
    return json.dumps(values).replace(json.dumps(_HERE), draw.choice(HOSTILE_JSON)).encode()


def _any_place(values: Any, draw: random.Random) -> tuple[Any, Any]:
    """A container and a key in it, at any depth; (None, None) is the whole."""
    owner, key = None, None
    while isinstance(values, dict | list) and values and (owner is None or draw.random() < 0.8):
        owner = values
        key = draw.choice(list(owner)) if isinstance(owner, dict) else draw.randrange(len(owner))
        values = owner[key]
    return (None, None) if draw.random() < 0.03 else (owner, key)


def damage_lines(data: bytes, draw: random.Random) -> bytes:
    """JSON damage to a few lines, which stay lines."""
    lines = data.splitlines()
    for index in draw.sample(range(len(lines)), min(len(lines), draw.randint(1, 4))):
        lines[index] = damage_json(lines[index], draw)
    if draw.random() < 0.2:
        lines.append(draw.choice(lines)[: draw.randint(1, 200)])
    return b"\n".join(lines) + draw.choice((b"\n", b""))


def damage_toml(data: bytes, draw: random.Random) -> bytes:
    """A value of another kind, a key of another name, a line twice, missing or of nothing we know."""
    lines = data.decode().splitlines()
    index = draw.choice([number for number, line in enumerate(lines) if line and not line.startswith("#")])
    key, equals, _ = lines[index].partition("=")
    kind = draw.randrange(8)
    if kind == 0:
        del lines[index]
    elif kind == 1:
        lines.insert(index, lines[index])
    elif kind == 2:
        lines[index] = lines[index].replace(draw.choice(lines[index]), draw.choice("x.\"'[]{}=#\x00"), 1)
    elif kind == 3:
        lines.insert(index, draw.choice(("unknown = 1", "[unknown]", "[[model]]", "model = 3", '"" = 1', "a.b.c = 1")))
    elif equals:
        lines[index] = f"{key}= {draw.choice(HOSTILE_TOML)}"
    return "\n".join(lines).encode()


def damage_tensors(data: bytes, draw: random.Random) -> bytes:
    """The header of a safetensors file: its JSON, the length it claims, or both."""
    if data[8:9] != b"{":
        return damage_bytes(data, draw)
    (size,) = struct.unpack("<Q", data[:8])
    header = damage_json(data[8 : 8 + size], draw) if draw.random() < 0.8 else data[8 : 8 + size]
    claimed = (
        draw.choice((0, 1, size - 1, len(data), 10**8, 2**40, 2**63, 2**64 - 1)) if draw.random() < 0.2 else len(header)
    )
    return struct.pack("<Q", claimed) + header + data[8 + size :]


def damage_vocab(data: bytes, draw: random.Random) -> bytes:
    """A SentencePiece model that parses and is wrong."""
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(data)
    for _ in range(draw.randint(1, 4)):
        _damage_model(model, draw)
    return model.SerializePartialToString()


def _damage_model(model: Any, draw: random.Random) -> None:
    piece = draw.choice(list(model.pieces)) if model.pieces else model.pieces.add()
    kind = draw.randrange(9)
    if kind == 0:
        piece.piece = draw.choice(("", "x", "\0", "<s>", "<unk>", "▁" * 300, "a b", "\n", "y" * 70_000))
    elif kind == 1:
        piece.type = draw.randint(1, 6)
    elif kind == 2:
        piece.score = draw.choice((float("nan"), float("inf"), float("-inf"), 1e38, -1e38))
    elif kind == 3:
        del model.pieces[draw.randrange(len(model.pieces) + 1) :]
    elif kind == 4:
        model.pieces.add(piece=draw.choice(("<s>", "</s>", "<pad>", "", "new")), score=0.0, type=draw.randint(1, 6))
    elif kind == 5:
        blob = draw.randbytes(draw.choice((3, 8, 300, 1028, 4_000)))
        model.normalizer_spec.precompiled_charsmap = draw.choice(
            (blob, struct.pack("<I", len(blob)) + blob, _trie(draw))
        )
    elif kind == 6:
        spec = model.trainer_spec
        spec.bos_id, spec.pad_id, spec.eos_id, spec.unk_id = (
            draw.choice((-1, 0, 1, 2, 3, 2**31 - 1)) for _ in range(4)
        )
    elif kind == 7:
        model.trainer_spec.model_type = draw.randint(1, 4)
        model.trainer_spec.byte_fallback = draw.random() < 0.5
    else:
        spec = model.normalizer_spec
        spec.add_dummy_prefix, spec.escape_whitespaces = draw.random() < 0.5, draw.random() < 0.5
        spec.remove_extra_whitespaces = draw.random() < 0.5
        model.trainer_spec.treat_whitespace_as_suffix = draw.random() < 0.5


def _trie(draw: random.Random) -> bytes:
    """A table of replacements whose shape is right and whose every entry may lead anywhere."""
    units = [draw.choice((draw.getrandbits(32), draw.getrandbits(10), draw.getrandbits(31))) for _ in range(256)]
    blob = struct.pack("<256I", *units)
    return struct.pack("<I", len(blob)) + blob + draw.choice((b"abc\0def\0", b"abc", b"\0", b""))


def _sealed(data: bytes) -> bytes:
    """With the checksum that its values ask for: damage that a checksum cannot find."""
    try:
        state = json.loads(data)
        return json.dumps({**state, "sha256": state_digest({k: v for k, v in state.items() if k != "sha256"})}).encode()
    except (ValueError, TypeError, RecursionError):
        return data
