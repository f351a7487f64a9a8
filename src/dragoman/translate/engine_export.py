"""What the engines of exports have in common: the facts that `model.json` states. Imports no library of theirs."""

from dragoman.data.vocab import Vocab
from dragoman.model.found import SearchOptions
from dragoman.translate.export_folder import ExportFolder


class ExportEngine:
    """See `engine.Engine`; what computes is added by each library's own."""

    def __init__(self, export: ExportFolder) -> None:
        info = export.info
        self.path = export.path
        self.vocab = Vocab.load(export.vocab_path)
        self.defaults = info.decode
        self.max_pieces = info.max_pieces
        self.learned_placeholders = info.learned_placeholders
        self.languages = (info.source_language, info.target_language)
        self._max_positions = info.max_positions

    def sentences_at_once(self, options: SearchOptions) -> int | None:
        return None
