"""The shared SentencePiece vocabulary: learned, loaded, adopted from elsewhere; text to ids and back.

The only file that talks to SentencePiece. Knows lines and ids, never corpora or files of text.
"""

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import sentencepiece

from dragoman.config import VocabConfig
from dragoman.data import placeholders
from dragoman.data.placeholders import Restorations
from dragoman.errors import DragomanError

BOS_ID, PAD_ID, EOS_ID, UNK_ID = 0, 1, 2, 3
FIRST_PLACEHOLDER_ID = 4
NUM_SPECIALS = FIRST_PLACEHOLDER_ID + len(placeholders.SYMBOLS)
MAX_SIZE = 65_536  # ids are uint16
SPACE = "▁"

_SPACED_LETTER = r"[^\W\u0590-\U0010ffff]"  # Latin, Greek, Cyrillic, Armenian letters and digits
_SPECIAL_PIECES = ("<s>", "<pad>", "</s>", "<unk>")
_NORMAL, _CONTROL, _UNKNOWN, _USER_DEFINED = 1, 3, 2, 4  # SentencePiece's piece types
_ALGORITHMS = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}


@dataclass(frozen=True)
class VocabRules:
    """How SentencePiece cuts text, for those who must do it without SentencePiece."""

    algorithm: str  # bpe, unigram, word, char
    scores: list[float]
    is_text: list[bool]  # made by cutting: not a byte, not a symbol
    user_defined: list[str]  # found as they stand, before anything is cut
    has_bytes: bool
    characters_map: bytes  # what is replaced before cutting; empty: nothing
    adds_prefix: bool  # a space in front of the first word
    is_suffix: bool  # spaces belong to the word before


class Vocab:
    """A loaded vocabulary."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.processor: Any = _load_processor(path)
        self.size: int = self.processor.get_piece_size()
        _check_special_ids(self.processor, path)
        self._check_pieces()

    @classmethod
    def load(cls, path: Path) -> "Vocab":
        return cls(path)

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Ids without EOS, exactly as SentencePiece gives them; placeholders are left alone."""
        return self.processor.encode(list(lines), out_type=int)

    def num_pieces(self, line: str) -> int:
        """Of one line, in microseconds: to encode several together starts threads, which takes a millisecond or two."""
        return len(self.processor.encode(line, out_type=int))

    def decode(self, batch: Sequence[Sequence[int]]) -> list[str]:
        """Text of the ids; control ids vanish, placeholder symbols stay (see `decode_target`)."""
        return self.processor.decode([[int(piece) for piece in ids] for ids in batch])

    def encode_source(
        self, line: str, mask: bool = True, hidden: Sequence[re.Pattern[str]] = ()
    ) -> tuple[list[int], Restorations]:
        """Ids of a line to translate, and what to put back afterwards.

        URLs, e-mails, tags, what the patterns find and what has characters without a piece become symbols that the
        model copies. `mask=False` is for models trained with `vocab.placeholder_share = 0`, which never learned them.
        """
        line = " ".join(line.replace(SPACE, "_").split())
        restorations: Restorations = {}
        if mask:
            line, restorations = placeholders.mask(line)
            for pattern in (*hidden, self._unknown_text):
                line, restorations = placeholders.mask_pattern(line, pattern, restorations)
        return self.processor.encode(line, out_type=int), restorations

    def decode_target(self, ids: Sequence[int], restorations: Restorations) -> str:
        """Text of a translation with its symbols restored."""
        # One list at a time: SentencePiece starts a thread pool for a list of lists.
        return _restored(self.processor.decode([int(piece) for piece in ids]), restorations)

    def decode_pieces(self, pieces: Sequence[str], restorations: Restorations) -> str:
        """As `decode_target`; what is no piece of the vocabulary stays as it is."""
        return _restored(self.processor.decode_pieces(list(pieces)), restorations)

    @cached_property
    def pieces(self) -> list[str]:
        return [self.processor.id_to_piece(index) for index in range(self.size)]

    def _check_pieces(self) -> None:
        if self.size > MAX_SIZE:
            raise DragomanError(f"{self.path} has {self.size:,} pieces", f"the most are {MAX_SIZE:,}: ids have 16 bits")
        try:
            _ = self.pieces  # read them all
        except UnicodeDecodeError:
            raise _not_a_model(self.path) from None

    @cached_property
    def piece_bytes(self) -> list[int]:
        """Bytes of each piece as BPE text shows it."""
        return [len(piece.encode()) for piece in self.pieces]

    @cached_property
    def words_are_independent(self) -> bool:
        """Whether encoding word by word equals encoding whole lines: no piece and no rule crosses a space."""
        proto = _parse(self.path.read_bytes(), self.path)
        rules = proto.normalizer_spec
        return (
            not rules.precompiled_charsmap
            and rules.add_dummy_prefix
            and rules.escape_whitespaces
            and proto.trainer_spec.byte_fallback
            and not any(SPACE in piece[1:] for piece in self.pieces)
        )

    @cached_property
    def rules(self) -> VocabRules:
        proto = _parse(self.path.read_bytes(), self.path)
        trainer, normalizer = proto.trainer_spec, proto.normalizer_spec
        return VocabRules(
            algorithm=_ALGORITHMS.get(trainer.model_type, "unknown"),
            scores=[entry.score for entry in proto.pieces],
            is_text=[entry.type == _NORMAL for entry in proto.pieces],
            user_defined=[entry.piece for entry in proto.pieces if entry.type == _USER_DEFINED],
            has_bytes=trainer.byte_fallback,
            characters_map=normalizer.precompiled_charsmap,
            adds_prefix=normalizer.add_dummy_prefix,
            is_suffix=trainer.treat_whitespace_as_suffix,
        )

    @cached_property
    def _unknown_text(self) -> re.Pattern[str]:
        """Words with a character that has no piece, and runs of such signs: nobody can translate half a word.

        Only in scripts that put spaces between words; elsewhere a whole sentence would look like one.
        """
        return unknown_text_pattern(self._known_characters())

    def _known_characters(self) -> list[str]:
        is_text = [
            not (self.processor.is_byte(index) or self.processor.is_control(index) or self.processor.is_unknown(index))
            for index in range(self.size)
        ]
        pieces = [piece for piece, keep in zip(self.pieces, is_text, strict=True) if keep]
        return sorted({character for piece in pieces for character in piece})


def _restored(text: str, restorations: Restorations) -> str:
    return " ".join(placeholders.restore(text, restorations).split())


def unknown_text_pattern(known: Sequence[str]) -> re.Pattern[str]:
    """Finds words with a character that is not known, and runs of such signs."""
    escaped = re.escape("".join(known))
    letters = re.escape("".join(character for character in known if re.fullmatch(_SPACED_LETTER, character)))
    # Where a known letter went before, the word was looked through: without this, a word takes its length squared.
    start = rf"(?<![{letters}])" if letters else ""
    return re.compile(rf"{start}{_SPACED_LETTER}*(?![{escaped}]){_SPACED_LETTER}+|[^\s{escaped}]+")


def learn_vocab(lines: Iterable[str], config: VocabConfig) -> bytes:
    """A BPE model with byte fallback and our special ids, as the bytes of its file."""
    model = io.BytesIO()
    trainer: Any = sentencepiece.SentencePieceTrainer
    try:
        trainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type="bpe",
            vocab_size=config.size,
            character_coverage=config.character_coverage,
            bos_id=BOS_ID,
            pad_id=PAD_ID,
            eos_id=EOS_ID,
            unk_id=UNK_ID,
            user_defined_symbols=list(placeholders.SYMBOLS),
            byte_fallback=True,
            split_digits=True,
            normalization_rule_name="identity",
            max_sentence_length=16_384,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _explain(str(error), config.size) from None
    return model.getvalue()


def adopt_vocab(path: Path) -> bytes:
    """An existing model with our special ids: renumbered if it has others. Its pieces and merges stay."""
    data = _read(path)
    proto = _parse(data, path)
    ours = [*_SPECIAL_PIECES, *placeholders.SYMBOLS]
    if [entry.piece for entry in proto.pieces[:NUM_SPECIALS]] == ours:
        return data
    kept = [entry for entry in proto.pieces if entry.type not in (_CONTROL, _UNKNOWN) and entry.piece not in ours]
    if NUM_SPECIALS + len(kept) > MAX_SIZE:
        raise DragomanError(
            f"{path} has {len(kept):,} pieces; with {NUM_SPECIALS} special ones that is more than {MAX_SIZE:,}",
            "use a smaller vocabulary: ids are stored in 16 bits",
        )
    kept_bytes = [entry.SerializeToString() for entry in kept]
    del proto.pieces[:]
    for piece in ours:
        proto.pieces.add(piece=piece, score=0.0, type=_piece_type(piece))
    for entry in kept_bytes:
        proto.pieces.add().ParseFromString(entry)
    _name_specials(proto.trainer_spec, len(proto.pieces))
    return proto.SerializeToString()


def _piece_type(piece: str) -> int:
    if piece in placeholders.SYMBOLS:
        return _USER_DEFINED
    return _UNKNOWN if piece == "<unk>" else _CONTROL


def _name_specials(spec: Any, size: int) -> None:
    spec.bos_id, spec.pad_id, spec.eos_id, spec.unk_id = BOS_ID, PAD_ID, EOS_ID, UNK_ID
    spec.bos_piece, spec.pad_piece, spec.eos_piece, spec.unk_piece = _SPECIAL_PIECES
    spec.vocab_size = size


def _explain(message: str, size: int) -> DragomanError:
    """SentencePiece's two usual refusals, in our words."""
    too_high = re.search(r"Please set it to a value <= (\d+)", message)
    if too_high:
        most = int(too_high.group(1))
        return DragomanError(
            f"the corpus is too small for a vocabulary of {size:,} pieces: it can carry at most {most:,}",
            f"give more text, or --vocab-size {most}" if most >= 300 else "give more text",
        )
    too_low = re.search(r"required_chars\D*(\d+) vs (\d+)", message)
    if too_low:
        least = max(int(too_low.group(1)), int(too_low.group(2)))
        return DragomanError(
            f"a vocabulary of {size:,} pieces is too small: the characters and bytes alone need {least:,}",
            f"for example --vocab-size {max(1_000, 2 * least)}",
        )
    return DragomanError(f"SentencePiece could not learn a vocabulary: {message}", "give more text")


def _load_processor(path: Path) -> Any:
    data = _read(path)
    processor: Any = sentencepiece.SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(data)
    except (RuntimeError, UnicodeDecodeError):  # of the second kind where its complaint quotes a broken piece
        raise _not_a_model(path) from None
    return processor


def _check_special_ids(processor: Any, path: Path) -> None:
    found = (processor.bos_id(), processor.pad_id(), processor.eos_id(), processor.unk_id())
    if found != (BOS_ID, PAD_ID, EOS_ID, UNK_ID):
        raise DragomanError(
            f"{path} numbers <s> <pad> </s> <unk> as {found}, not 0 1 2 3",
            "give it to `dragoman prepare --vocab`, which renumbers it",
        )


def _parse(data: bytes, path: Path) -> Any:
    from sentencepiece import sentencepiece_model_pb2  # type: ignore[import-untyped]

    proto = cast("Any", sentencepiece_model_pb2).ModelProto()
    try:
        proto.ParseFromString(data)
    except Exception:
        # protobuf's DecodeError has no public home that all of its versions share.
        raise _not_a_model(path) from None
    if not proto.pieces:
        raise _not_a_model(path)
    return proto


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise DragomanError(f"there is no vocabulary {path}", "name a SentencePiece .model file")
    return path.read_bytes()


def _not_a_model(path: Path) -> DragomanError:
    return DragomanError(f"{path} is not a SentencePiece model", "name a .model file made by SentencePiece")
