"""A model of a recipe's size that copies its input, exported: speed can be measured without training anything first.

    python benchmarks/copying_model.py --data DIR --out EXPORT [--checkpoint DIR] [--recipe base] [--quantization int8]

A Transformer is as fast as its sizes and as long as its translations. With random weights these never end; here they are as
long as their sources, and known beforehand, so that a wrong answer is seen. One attention to the source looks at the place
that is to be written, found by its position alone, and carries its piece over; all other layers compute and change nothing.
With `--checkpoint` the model itself is written too, for `dragoman export` and for torch.
"""

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import tomli_w
import torch

from dragoman import __version__
from dragoman.config import Recipe
from dragoman.data.shards import open_shards
from dragoman.data.vocab import Vocab
from dragoman.hashing import file_sha256
from dragoman.model.alignment import alignment_layer
from dragoman.model.transformer import CrossAttention, Transformer, initialize
from dragoman.model.weights import save_tensors
from dragoman.recipe import load_recipe
from dragoman.run.checkpoint_files import RECIPE, VOCAB, WEIGHTS
from dragoman.translate.export.ctranslate2 import to_ctranslate2
from dragoman.translate.export_folder import NAME, SCHEMA, ExportInfo, FileEntry, Origin

PLACE_SHARE = 0.25  # of the width, kept free of words: there the position alone is seen
WORD_SIZE = 4.0  # how much longer words are than positions
SHARPNESS = 250.0  # of the attention: the place beside gets a tenth of this less
CARRIED = 8.0  # so much more weight has the piece that is looked at than the one before
CERTAINTY = 0.2  # probabilities of about 0.98, as a trained model has, instead of 1
NUM_ONES = 8
NEARLY_NOTHING = 1e-4  # what the other layers add: computed like any number, too small to be seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder made by `dragoman prepare`: its vocabulary")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--recipe", default="base")
    parser.add_argument("--quantization", default="int8")
    options = parser.parse_args()
    recipe, shards = load_recipe(options.recipe), open_shards(options.data)
    vocab = Vocab.load(shards.vocab_path)
    model = Transformer(recipe.model, len(vocab.pieces))
    make_copying(model)
    if options.checkpoint is not None:
        write_checkpoint(options.checkpoint, model, recipe, shards.vocab_path)
    to_ctranslate2(model, vocab, options.out, options.quantization)
    (options.out / "vocab.model").write_bytes(shards.vocab_path.read_bytes())
    source, _, target = shards.manifest.languages.partition("-")
    info = ExportInfo(
        schema=SCHEMA,
        format="ctranslate2",
        quantization=options.quantization,
        dragoman=__version__,
        created="",
        source_language=source,
        target_language=target,
        max_positions=recipe.model.max_positions,
        max_pieces=recipe.batch.max_pieces,
        learned_placeholders=recipe.vocab.placeholder_share > 0,
        decode=recipe.decode,
        origin=Origin(recipe=f"{options.recipe}, copying"),
        gate={},
        files={
            path.name: FileEntry(num_bytes=path.stat().st_size, sha256=file_sha256(path))
            for path in sorted(options.out.iterdir())
            if path.name != NAME
        },
    )
    (options.out / NAME).write_text(info.model_dump_json(indent=2, by_alias=True) + "\n", encoding="utf-8")


def write_checkpoint(folder: Path, model: Transformer, recipe: Recipe, vocab_path: Path) -> None:
    folder.mkdir()
    save_tensors(model.state_dict(), folder / WEIGHTS)
    (folder / RECIPE).write_text(tomli_w.dumps(recipe.model_dump(exclude_none=True)), encoding="utf-8")
    (folder / VOCAB).write_bytes(vocab_path.read_bytes())


@dataclass(frozen=True)
class Dimensions:
    """Which dimensions of the residual stream are for what."""

    places: torch.Tensor  # the quickest waves of the position table, sines first: no word is there
    ones: torch.Tensor  # its slowest cosines, always 1: what a norm's mean took away is known from them
    words: torch.Tensor  # all others

    @classmethod
    def of(cls, width: int) -> "Dimensions":
        half = width // 2
        waves = torch.arange(int(half * PLACE_SHARE))
        places, ones = torch.cat([waves, half + waves]), torch.arange(width - NUM_ONES, width)
        is_word = torch.ones(width, dtype=torch.bool)
        is_word[places] = is_word[ones] = False
        return cls(places, ones, is_word.nonzero().flatten())


@torch.no_grad()
def make_copying(model: Transformer) -> None:
    """For models with the norm before every sublayer."""
    assert model.config.norm == "pre"
    initialize(model, 1)
    for name, parameter in model.named_parameters():
        if name.endswith(("sublayer.out.weight", "sublayer.down.weight")):
            parameter.mul_(NEARLY_NOTHING)
    dimensions = Dimensions.of(model.config.d_model)
    _lay_words(model, dimensions.words)
    decoder_layer = model.decoder[alignment_layer(model.config.num_decoder_layers)]
    attention = decoder_layer.cross_attention.sublayer  # type: ignore[union-attr]
    assert isinstance(attention, CrossAttention)
    _look_at_own_place(attention, dimensions)
    _carry_words(attention, dimensions.words)
    model.decoder_norm.weight.fill_(CERTAINTY)  # type: ignore[union-attr]


def _lay_words(model: Transformer, words: torch.Tensor) -> None:
    """Every piece in a direction of its own, all equally long and with a mean of zero, so that norms treat them alike."""
    weight = model.embedding.weight
    length = WORD_SIZE * math.sqrt(len(words) / model.config.d_model)
    directions = weight[:, words] - weight[:, words].mean(dim=1, keepdim=True)
    weight.zero_()
    weight[:, words] = length * torch.nn.functional.normalize(directions, dim=1)


def _look_at_own_place(attention: CrossAttention, dimensions: Dimensions) -> None:
    """Sum of cos(w (i - j)) over waves w, in every head: greatest where both places are the same."""
    width, num_heads = attention.q.weight.shape[0], attention.num_heads
    head, num_waves = width // num_heads, len(dimensions.places) // 2
    waves = torch.linspace(0, num_waves - 1, head // 2).round().long()
    seen = torch.cat([waves, waves + width // 2])
    # What a norm divides by: words and waves, less the mean of the latter.
    spread = math.sqrt((WORD_SIZE**2 * len(dimensions.words) + width / 2) / width - 0.1)
    gain = math.sqrt(SHARPNESS * math.sqrt(head) / (head // 2))
    for linear in (attention.q, attention.kv):
        weight, bias = linear.weight[:width], linear.bias[:width]
        weight.zero_()
        weight[:, dimensions.ones] = -gain * spread / NUM_ONES
        weight[torch.arange(width), seen.repeat(num_heads)] = gain * spread
        bias.fill_(gain)


def _carry_words(attention: CrossAttention, words: torch.Tensor) -> None:
    """Each head carries its share of the dimensions of words."""
    width, num_heads = attention.q.weight.shape[0], attention.num_heads
    head, share = width // num_heads, -(-len(words) // num_heads)
    slots = torch.arange(len(words)) // share * head + torch.arange(len(words)) % share
    values = attention.kv.weight[width:]
    values.zero_()
    values[slots, words] = 1.0
    attention.out.weight.zero_()
    attention.out.weight[words, slots] = CARRIED


if __name__ == "__main__":
    main()
