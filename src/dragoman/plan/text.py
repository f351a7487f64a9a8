"""How much text a run learns from: read off a data folder's manifest, or what the recipe lets one expect."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dragoman.config import Recipe
from dragoman.data.manifest import Manifest

# What the history of this kind of text shows; a recipe cannot know its corpus.
USUAL_TOKENS_PER_PAIR = 26.0
USUAL_DEV_PAIRS = 3_000
USUAL_VOCAB_BYTES_PER_PIECE = 16
ID_BYTES, LENGTH_BYTES = 2, 4  # a token in a shard; a pair in its length index


@dataclass(frozen=True, slots=True)
class TextFacts:
    """Sizes of the training text. `num_pairs` is 0 where nobody knows it yet."""

    vocab_size: int
    num_pairs: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    num_dev_pairs: int = USUAL_DEV_PAIRS
    vocab_bytes: int = 0
    download_bytes: int = 0
    stage_seconds: Mapping[str, float] = field(default_factory=dict[str, float])  # of `prepare`, where it was run
    is_known: bool = False  # from a data folder

    @property
    def folder_bytes(self) -> int:
        return (self.source_tokens + self.target_tokens) * ID_BYTES + self.num_pairs * LENGTH_BYTES

    @property
    def tokens_per_pair(self) -> float:
        return self.target_tokens / self.num_pairs if self.num_pairs else USUAL_TOKENS_PER_PAIR


def text_of_manifest(manifest: Manifest, vocab_bytes: int = 0) -> TextFacts:
    """What a data folder says of itself."""
    return TextFacts(
        vocab_size=manifest.vocab.size,
        num_pairs=manifest.num_train_pairs,
        source_tokens=manifest.source_tokens,
        target_tokens=manifest.target_tokens,
        num_dev_pairs=sum(entry.num_pairs for entry in manifest.dev),
        vocab_bytes=vocab_bytes or manifest.vocab.size * USUAL_VOCAB_BYTES_PER_PIECE,
        stage_seconds=manifest.seconds,
        is_known=True,
    )


def text_of_recipe(recipe: Recipe) -> TextFacts:
    """What the recipe alone tells: its vocabulary, the pairs it expects, and a usual length."""
    pairs = recipe.data.expected_pairs
    tokens = round(pairs * USUAL_TOKENS_PER_PAIR)
    return TextFacts(
        vocab_size=recipe.vocab.size,
        num_pairs=pairs,
        source_tokens=tokens,
        target_tokens=tokens,
        vocab_bytes=recipe.vocab.size * USUAL_VOCAB_BYTES_PER_PIECE,
        download_bytes=_download_bytes(recipe),
    )


def _download_bytes(recipe: Recipe) -> int:
    """Of the catalogue's archives among the corpora; others are not known before."""
    from dragoman.data.catalog import ARCHIVES, GROUPS

    names = {member for name in recipe.data.corpora for member in GROUPS.get(name, (name,))}
    return sum(archive.remote.num_bytes or 0 for name, archive in ARCHIVES.items() if name in names)
