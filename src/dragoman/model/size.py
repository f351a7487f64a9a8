"""How big a model is: parameters, arithmetic, bytes. From the settings alone, without torch."""

from dataclasses import dataclass

from dragoman.config import ModelConfig

ADAM_STATES = 2
# Whose logits exist at a time: by the fused kernels, and by the others, which keep their gradient too.
LOSS_CHUNK_TOKENS = 8_192
LOSS_CHUNK_ELEMENTS = 4_000_000  # 16 MB in fp32
# Most programs of fused norms and activations in a backward pass, each of which leaves a row of partial sums.
NORM_PROGRAMS, ACTIVATION_PROGRAMS = 528, 192
EVALUATION_TOKENS = 8_000  # of a batch whose loss is evaluated


@dataclass(frozen=True)
class ModelSize:
    """Sizes of one model. FLOPs count a multiplication and an addition as two."""

    num_parameters: int
    matrix_parameters: int  # that take part in a product for every token, output projection included
    forward_flops_per_token: int  # per target token with a source token beside it; attention scores left out
    train_flops_per_token: int
    gradient_bytes: int  # fp32
    checkpoint_bytes: int  # fp32 weights and both of Adam's averages

    def train_bytes(
        self,
        microbatch_tokens: int,
        config: ModelConfig,
        vocab_size: int,
        value_bytes: int = 4,
        recomputes: bool = False,
    ) -> int:
        """Memory of training, rather too much than too little: weights, gradients, averages, and the activations of
        one microbatch with as much text on both sides; if these are recomputed, of one layer and what enters each."""
        d, f = config.d_model, config.d_ffn
        if value_bytes == 2:
            # Fused kernels: 2-byte copies of weights and gradients, and the residual stream in 4 bytes.
            fixed = self.num_parameters * (4 * (2 + ADAM_STATES) + 2 + 2)
            encoder, decoder = 2 * (9 * d + f) + 4 * 2 * d, 2 * (15 * d + f) + 4 * 3 * d
            loss = min(microbatch_tokens, LOSS_CHUNK_TOKENS) * vocab_size * 2
            fixed += self._fused_extra_bytes(config)
        else:
            fixed = self.num_parameters * value_bytes * (2 + ADAM_STATES)
            encoder, decoder = value_bytes * (10 * d + 3 * f), value_bytes * (16 * d + 3 * f)
            loss = min(microbatch_tokens * vocab_size, LOSS_CHUNK_ELEMENTS) * 8 + vocab_size * d * value_bytes
        under_way = value_bytes * (8 * d + 2 * f)  # gradients of a layer's activations, and both ends of the model
        layers = config.num_encoder_layers * encoder + config.num_decoder_layers * decoder
        if recomputes:
            num_layers = config.num_encoder_layers + config.num_decoder_layers
            layers = max(encoder, decoder) + num_layers * 2 * value_bytes * d
        return fixed + microbatch_tokens * (layers + under_way) + loss

    def _fused_extra_bytes(self, config: ModelConfig) -> int:
        """Whatever the batch: partial sums, kept until a pass ends, and evaluations, which go through torch's own
        operations and cannot use the memory that recorded passes hold."""
        d, f = config.d_model, config.d_ffn
        num_norms = 2 * config.num_encoder_layers + 3 * config.num_decoder_layers + 2
        num_layers = config.num_encoder_layers + config.num_decoder_layers
        sums = 4 * (num_norms * NORM_PROGRAMS * 3 * d + num_layers * ACTIVATION_PROGRAMS * f)
        copies = 2 * 2 * self.num_parameters  # of the weights, in half precision: for the loss, and to decode with
        return sums + copies + EVALUATION_TOKENS * (14 * d + 4 * f) + 10 * LOSS_CHUNK_ELEMENTS

    def measure_bytes(self, value_bytes: int = 4) -> int:
        """Memory before the first step of several ranks, when exchanges are timed on weights and gradients of their
        own and keep an error beside them, with no activations."""
        vectors = (2 + ADAM_STATES) + 2 + 3
        return self.num_parameters * (vectors * max(4, value_bytes) + (6 if value_bytes == 2 else 0))


def size_of(config: ModelConfig, vocab_size: int) -> ModelSize:
    """The size of a recipe's model."""
    d, f = config.d_model, config.d_ffn
    bias = 1 if config.attention_bias else 0
    attention = 4 * d * d
    attention_biases = 4 * d * bias
    feed_forward = 2 * d * f
    norm = 2 * d
    encoder_matrices = attention + feed_forward
    decoder_matrices = 2 * attention + feed_forward
    encoder = encoder_matrices + attention_biases + f + d + 2 * norm
    decoder = decoder_matrices + 2 * attention_biases + f + d + 3 * norm
    final_norms = 2 * norm if config.norm == "pre" else 0
    layers = config.num_encoder_layers * encoder + config.num_decoder_layers * decoder
    num_parameters = vocab_size * d + layers + final_norms
    matrices = (
        config.num_encoder_layers * encoder_matrices + config.num_decoder_layers * decoder_matrices + vocab_size * d
    )
    forward = 2 * matrices
    return ModelSize(
        num_parameters=num_parameters,
        matrix_parameters=matrices,
        forward_flops_per_token=forward,
        train_flops_per_token=3 * forward,
        gradient_bytes=4 * num_parameters,
        checkpoint_bytes=4 * num_parameters * (1 + ADAM_STATES),
    )
