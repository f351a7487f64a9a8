"""Dragoman trains Transformer translation models and tells what the run did and why."""

__version__ = "0.1.0"
