"""What training minimises: the smoothed losses of one microbatch, a forward pass away from its backward pass."""

from dragoman.model.loss import TokenLosses, linear_cross_entropy
from dragoman.model.transformer import Transformer
from dragoman.train.feed import Microbatch


def summed_losses(model: Transformer, piece: Microbatch, label_smoothing: float) -> TokenLosses:
    """Sums over the microbatch's real target tokens."""
    hidden = model(piece.source_ids, piece.source, piece.input_ids, piece.target)
    return linear_cross_entropy(hidden, model.embedding.weight, piece.labels, piece.weights, label_smoothing)
