"""Every setting of a run, documented once. The defaults are Transformer-base; a recipe file states only what differs.

Knows settings, never files, data or torch.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Share = Annotated[float, Field(ge=0, lt=1)]
LARGEST = 2**53  # whole numbers beyond are not exact as floats, and overflow some of what computes with them
Positive = Annotated[int, Field(ge=1, le=LARGEST)]
Natural = Annotated[int, Field(ge=0, le=LARGEST)]
Seed = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]

FilterName = Literal["empty", "too_long", "length_ratio", "identical", "non_letters", "wrong_script", "wrong_language"]
DEFAULT_FILTERS: tuple[FilterName, ...] = (
    "empty",
    "too_long",
    "length_ratio",
    "identical",
    "non_letters",
    "wrong_script",
)


class Section(BaseModel):
    """Strict: no unknown keys, no silent conversion, no change after reading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class DataConfig(Section):
    """What `prepare` does to the text."""

    languages: str | None = Field(None, description="source and target language, such as en-de")
    corpora: list[str] = Field([], description="catalogue names of the training corpora")
    dev: list[str] = Field([], description="catalogue names of the dev sets")
    test: list[str] = Field([], description="catalogue names of the test sets")
    expected_pairs: Natural = Field(0, description="warn if cleaning leaves another number of pairs; 0: no check")
    normalization: Literal["nfc", "nfkc", "none"] = Field("nfc", description="Unicode normalisation of both sides")
    filters: list[FilterName] = Field(list(DEFAULT_FILTERS), description="cleaning filters, in order")
    min_words: Natural = Field(1, description="fewest words a side (filter empty)")
    max_words: Positive = Field(200, description="most words a side (filter too_long)")
    max_length_ratio: float = Field(4.0, gt=1, description="longer over shorter side, in characters")
    min_letters: Share = Field(0.4, description="fewest letters among the non-space characters")
    deduplicate: bool = Field(True, description="keep one of several identical pairs")
    remove_overlap: bool = Field(True, description="drop training pairs that occur in a dev or test set")
    held_out_pairs: Positive = Field(2_000, description="size of dev and of test when none is given")
    shard_pairs: Positive = Field(1_000_000, description="most pairs in a shard, the block of the batch plan")
    seed: Seed = Field(1, description="seed of the shuffle and of every sample")


class VocabConfig(Section):
    """The shared SentencePiece vocabulary."""

    size: Annotated[int, Field(ge=300, le=65_536)] = Field(32_768, description="number of pieces, shared by both sides")
    character_coverage: Annotated[float, Field(gt=0.9, le=1)] = Field(
        0.9999, description="share of characters with a piece; the rest is spelled in bytes"
    )
    sample_lines: Positive = Field(1_000_000, description="most lines, both sides together, to learn it from")
    placeholder_share: Share = Field(0.01, description="share of training pairs that carry a placeholder")


class ModelConfig(Section):
    """The Transformer. Only what CTranslate2 and a stock Hugging Face class express."""

    d_model: Positive = Field(512, description="width of the residual stream")
    num_heads: Positive = Field(8, description="attention heads")
    d_ffn: Positive = Field(2_048, description="width of the feed-forward layers")
    num_encoder_layers: Positive = Field(6, description="encoder depth")
    num_decoder_layers: Positive = Field(6, description="decoder depth")
    norm: Literal["pre", "post"] = Field("pre", description="layer norm before (M2M100) or after (Marian) a sublayer")
    activation: Literal["relu", "gelu", "swish"] = Field("relu", description="feed-forward activation")
    attention_bias: bool = Field(True, description="biases in the attention projections")
    dropout: Share = Field(0.1, description="on embeddings and sublayer outputs")
    ffn_dropout: Share = Field(0.1, description="on feed-forward activations")
    max_positions: Annotated[int, Field(ge=1, le=65_536)] = Field(
        1_024, description="longest sequence the position table covers, in pieces"
    )

    @model_validator(mode="after")
    def _can_be_exported(self) -> "ModelConfig":
        if self.d_model % self.num_heads or self.d_model % 2:
            raise ValueError(f"d_model {self.d_model} must be even and a multiple of num_heads {self.num_heads}")
        return self


class BatchConfig(Section):
    """How much text one step (one optimizer update, all ranks together) learns from."""

    target_tokens: Positive = Field(25_600, description="target tokens of one step over all ranks, EOS counted")
    num_microbatches: Positive | Literal["auto"] = Field(
        "auto",
        description="pieces a step is cut into, at least the number of ranks; auto: as few as the memory of the GPUs "
        "lets it be, 8 without GPUs",
    )
    max_pieces: Positive = Field(256, description="longest side in training, in pieces without EOS")


class CutBatch(BatchConfig):
    """A batch for which it is settled how a step is cut."""

    num_microbatches: Positive  # type: ignore[override]  # narrower is safe: nothing is written to a section


class OptimConfig(Section):
    """Optimizer and learning rate."""

    method: Literal["adamw", "adam", "muon"] = Field(
        "adamw", description="adam adds weight decay to the gradient; muon: matrices by Muon, the rest by adamw"
    )
    betas: Annotated[list[float], Field(min_length=2, max_length=2)] = Field(
        [0.9, 0.98], description="decay of Adam's two averages"
    )
    epsilon: float = Field(1e-9, gt=0, description="Adam's epsilon")
    weight_decay: Annotated[float, Field(ge=0)] = Field(
        0.0, description="decay of the matrices; norms and biases: none"
    )
    schedule: Literal["transformer", "cosine", "linear", "wsd"] = Field(
        "transformer",
        description="transformer: learning_rate x d_model^-0.5 x min(step^-0.5, step x warmup^-1.5); "
        "the others rise to learning_rate, then fall to final_share of it",
    )
    learning_rate: float = Field(2.0, gt=0, description="peak rate, or the factor of the transformer schedule")
    warmup_steps: Positive = Field(4_000, description="steps of linear rise")
    final_share: Annotated[float, Field(ge=0, le=1)] = Field(0.0, description="rate at the last step over the peak")
    decay_share: Annotated[float, Field(gt=0, le=1)] = Field(0.2, description="wsd: share of the run spent falling")
    max_norm: Annotated[float, Field(ge=0)] = Field(0.0, description="clip the global gradient norm; 0: no clipping")


class TrainConfig(Section):
    """Length, loss and arithmetic of the run."""

    max_steps: Positive = Field(100_000, description="optimizer updates in all")
    max_minutes: Annotated[float, Field(ge=0)] = Field(0.0, description="wall-clock limit over all attempts; 0: none")
    hang_minutes: Annotated[float, Field(ge=0)] = Field(
        10.0,
        description="end the run and say where every rank is if no step ends for so long, or for ten times the longest "
        "step if that is more; 0: never",
    )
    patience: Natural = Field(0, description="stop after so many evaluations without a better dev loss; 0: never")
    seed: Seed = Field(1, description="seed of weights, batch order and dropout")
    label_smoothing: Share = Field(0.1, description="probability spread over the whole vocabulary")
    precision: Literal["fp32", "bf16", "fp16", "fp64", "auto"] = Field(
        "auto", description="auto: bf16 on a GPU that has it, fp16 on an older one, fp32 on a CPU; fp64 is for tests"
    )
    kernels: Literal["auto", "torch"] = Field(
        "auto", description="auto: fused kernels on a GPU that runs them; torch: its own operations everywhere"
    )
    recompute: bool | Literal["auto"] = Field(
        "auto",
        description="keep only what enters a layer and compute the rest again on the way back: a third more work, a "
        "fraction of the memory; auto: where a microbatch would not fit otherwise",
    )
    deterministic: bool = Field(
        False,
        description="the same bits from the same ranks and GPUs, for a little of the speed; a CPU always gives them",
    )
    log_every: Positive = Field(10, description="steps between two lines of the log and two points in TensorBoard")


class EvaluateConfig(Section):
    """Validation during training."""

    every_steps: Positive = Field(4_000, description="steps between two evaluations; the last step is always one")
    decode: bool = Field(True, description="translate the first dev set for BLEU and chrF")
    beam: Positive = Field(1, description="beam of these translations; 1: greedy")
    max_decoded: Positive = Field(2_000, description="most dev sentences translated at an evaluation")
    train_pairs: Natural = Field(2_000, description="fixed training pairs whose loss is compared with the dev loss")
    num_samples: Natural = Field(5, description="sample translations shown and kept")


class CheckpointConfig(Section):
    """What is kept on disk."""

    every_steps: Positive = Field(1_000, description="steps between two checkpoints; evaluations save one too")
    every_minutes: Annotated[float, Field(ge=0)] = Field(
        10.0, description="save at least so often, however long a step takes; 0: by steps alone"
    )
    keep_last: Positive = Field(5, description="newest checkpoints kept, beside the best two")
    max_gigabytes: Annotated[float, Field(ge=0)] = Field(
        0.0, description="most that checkpoints may take of a host's disk, older ones go first; 0: what there is"
    )
    average_last: Natural = Field(0, description="average the newest k checkpoints into `average` at the end; 0: no")


class DecodeConfig(Section):
    """Defaults of `translate` and `evaluate`."""

    beam: Positive = Field(4, description="hypotheses kept per sentence")
    length_penalty: Annotated[float, Field(ge=0)] = Field(1.0, description="score = log-probability / length^this")
    max_length: Positive = Field(256, description="longest translation, in pieces")


class SyncConfig(Section):
    """How ranks stay together. `docs/guide/several-machines.md` says what each method costs."""

    method: Literal["auto", "dense", "int8", "powersgd", "diloco"] = Field(
        "auto",
        description="dense: the exact sum of all gradients; int8, powersgd: smaller gradients; diloco: replicas that "
        "are averaged while they train; auto: dense on one machine, else by measured compute and link",
    )
    precision: Literal["auto", "fp32", "bf16", "fp16", "int8", "int4", "sign"] = Field(
        "auto", description="what travels; dense: fp32 (auto), bf16 or fp16; diloco: any, sign (auto)"
    )
    every_steps: Positive = Field(4, description="diloco: steps in which every weight travels once")
    delay_steps: Positive = Field(1, description="diloco: steps a fragment may take to travel")
    inner_rate: Annotated[float, Field(ge=0)] = Field(
        0.0, description="diloco: factor on a replica's learning rate; 0: root of the number of replicas"
    )
    outer_rate: float = Field(0.8, gt=0, description="diloco: how far the shared weights follow the mean movement")
    outer_momentum: Share = Field(0.3, description="diloco: Nesterov momentum of that movement")
    replica: Literal["host", "rank"] = Field("host", description="diloco: what trains by itself")
    matrix_rank: Positive = Field(4, description="powersgd: columns of the thin factors")
    dense_steps: Natural = Field(10, description="powersgd: first steps that are exchanged whole")

    @model_validator(mode="after")
    def _fits_the_method(self) -> "SyncConfig":
        allowed = {"dense": ("auto", "fp32", "bf16", "fp16"), "int8": ("auto",), "powersgd": ("auto",)}
        if self.precision not in allowed.get(self.method, (self.precision,)):
            raise ValueError(f"sync.precision {self.precision} does not exist for sync.method {self.method}")
        for name in ("precision", "every_steps", "delay_steps"):
            if self.method == "auto" and getattr(self, name) != SyncConfig.model_fields[name].default:
                raise ValueError(f"sync.{name} is chosen by sync.method auto: name a method to set it yourself")
        if self.delay_steps > self.every_steps:
            raise ValueError(
                f"sync.delay_steps {self.delay_steps} exceeds sync.every_steps {self.every_steps}: "
                "a fragment would set out again before it landed"
            )
        return self


class Recipe(Section):
    """Everything that decides a run but the text itself."""

    name: str = Field("custom", description="name of the recipe")
    about: str = Field("", description="what it is for, and what deviates from the published setting")
    data: DataConfig = DataConfig()  # type: ignore[call-arg]
    vocab: VocabConfig = VocabConfig()  # type: ignore[call-arg]
    model: ModelConfig = ModelConfig()  # type: ignore[call-arg]
    batch: BatchConfig = BatchConfig()  # type: ignore[call-arg]
    optim: OptimConfig = OptimConfig()  # type: ignore[call-arg]
    train: TrainConfig = TrainConfig()  # type: ignore[call-arg]
    evaluate: EvaluateConfig = EvaluateConfig()  # type: ignore[call-arg]
    checkpoint: CheckpointConfig = CheckpointConfig()  # type: ignore[call-arg]
    decode: DecodeConfig = DecodeConfig()  # type: ignore[call-arg]
    sync: SyncConfig = SyncConfig()  # type: ignore[call-arg]

    @model_validator(mode="after")
    def _lengths_agree(self) -> "Recipe":
        if self.batch.max_pieces + 1 > self.model.max_positions:
            raise ValueError(
                f"batch.max_pieces {self.batch.max_pieces} plus EOS exceeds "
                f"model.max_positions {self.model.max_positions}"
            )
        number = self.batch.num_microbatches
        per_piece = self.batch.target_tokens // (1 if number == "auto" else number)
        if self.batch.max_pieces + 1 > per_piece:
            raise ValueError(
                f"a sentence of batch.max_pieces {self.batch.max_pieces} plus EOS does not fit into a microbatch of "
                f"{per_piece} tokens (batch.target_tokens / batch.num_microbatches)"
            )
        return self


class CutRecipe(Recipe):
    """A recipe for which it is settled how a step is cut: `plan.microbatches` makes it."""

    batch: CutBatch  # type: ignore[override]
