"""Beam search on a device: the state of every sentence, moved on by one word at a time without asking the host.

The same scores and stopping rule as `model.search`, over shapes that never change, so that a graph can hold a step:
sentences that are done stay where they are, and a beam that does not exist yet scores minus infinity.
Shape letters: B sentences, K beam, N rows (B x K), C candidates (2K), P positions, W best words of a row.
"""

import numpy as np
import torch

from dragoman.model.found import SearchOptions
from dragoman.model.fused.decoding.log import FIELDS

NUM_SETTINGS = 5


class Beams:
    """Nothing is open until `start`."""

    def __init__(self, num_sentences: int, beam: int, num_positions: int, device: torch.device) -> None:
        num_rows = num_sentences * beam
        settings = torch.zeros(NUM_SETTINGS, dtype=torch.int64, device=device)
        self._settings = settings
        self.step_1, self.eos_1 = settings[0:1], settings[1:2]
        self._limit_1, self._needed_1, self._needs_top_1 = settings[2:3], settings[3:4], settings[4:5]
        self.open_B = torch.zeros(num_sentences, dtype=torch.int32, device=device)
        self.words_N = torch.zeros(num_rows, dtype=torch.int32, device=device)
        # Where in the cache a row finds every position of its past. Following the beam reorders this, not the cache.
        self.slots_PN = torch.zeros(num_positions, num_rows, dtype=torch.int32, device=device)
        self._scores_BK = torch.zeros(num_sentences, beam, device=device)
        self._num_finished_B = torch.zeros(num_sentences, dtype=torch.int64, device=device)
        self._top_finished_B = torch.zeros(num_sentences, dtype=torch.bool, device=device)
        self._log_PFN = torch.zeros(num_positions, len(FIELDS), num_rows, dtype=torch.int32, device=device)
        self._positions_P1 = torch.arange(num_positions, device=device)[:, None]
        self._rows_N = torch.arange(num_rows, device=device)
        self._first_rows_B1 = self._rows_N[::beam, None]

    def start(self, num_sentences: int, eos_id: int, max_length: int, options: SearchOptions) -> None:
        """Open the first sentences. With a length penalty of 0 scores only fall: the best one that ends is the best."""
        is_plain = options.length_penalty == 0
        needed = options.num_best if is_plain else options.beam
        self._settings.copy_(torch.tensor([0, eos_id, max_length, needed, int(is_plain)]))
        self.words_N.fill_(eos_id)
        self.open_B.zero_()
        self.open_B[:num_sentences] = 1
        self._num_finished_B.zero_()
        self._top_finished_B.zero_()
        self._scores_BK.fill_(-torch.inf)
        self._scores_BK[:, 0] = 0

    def advance(self, top_NW: torch.Tensor, words_NW: torch.Tensor) -> torch.Tensor:
        """Take the best words of every row, with their log-probabilities; (N,) the row that each goes on from."""
        scores_BC, beams_BC, words_BC = self._candidates(top_NW, words_NW)
        beam = self._scores_BK.shape[1]
        ends_BC = words_BC == self.eos_1
        closes_BK = ends_BC[:, :beam] | (self.step_1 + 1 == self._limit_1)
        closes_BK &= scores_BC[:, :beam] > -torch.inf
        closes_BK &= self.open_B[:, None] > 0
        # Candidates that do not end, best first: a finished beam's place goes to the next one behind the first K.
        kept_BK = torch.argsort(ends_BC.int(), dim=1, stable=True)[:, :beam]
        parents_BK, next_BK = beams_BC.gather(1, kept_BK), words_BC.gather(1, kept_BK)
        # Only a beam wider than the vocabulary keeps an ended candidate, for want of others: it must not win again.
        self._scores_BK.copy_(scores_BC.gather(1, kept_BK).masked_fill(next_BK == self.eos_1, -torch.inf))
        self.words_N.copy_(next_BK.flatten())
        best_BK = (beams_BC[:, :beam], words_BC[:, :beam], scores_BC[:, :beam].contiguous().view(torch.int32))
        self._write(parents_BK, next_BK, closes_BK, *best_BK)
        self._finish(closes_BK)
        rows_N = (self._first_rows_B1 + parents_BK).flatten()
        self._follow(rows_N)
        self.step_1 += 1
        return rows_N

    def is_done(self) -> bool:
        """Whether every sentence is; waits for the device."""
        return not bool(self.open_B.any())

    def log(self, num_steps: int) -> np.ndarray:
        """What was written down so far, (T, FIELDS, B, K)."""
        return self._log_PFN[:num_steps].cpu().numpy().reshape(num_steps, len(FIELDS), *self._scores_BK.shape)

    def _candidates(
        self, top_NW: torch.Tensor, words_NW: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The 2 x beam best continuations of every sentence: total score, beam they extend, word. (B, C) each."""
        num_sentences, beam = self._scores_BK.shape
        num_words = top_NW.shape[1]
        total_BX = (top_NW.view(num_sentences, beam, num_words) + self._scores_BK[:, :, None]).flatten(1)
        scores_BC, places_BC = total_BX.topk(min(2 * beam, total_BX.shape[1]), dim=1)
        words_BC = words_NW.view(num_sentences, -1).gather(1, places_BC)
        return scores_BC, places_BC // num_words, words_BC

    def _write(self, *fields_BK: torch.Tensor) -> None:
        """One line of the log, its fields in the order of `FIELDS`."""
        line_FN = torch.stack([field.int().flatten() for field in fields_BK])
        _set_row(self._log_PFN.flatten(1), self._positions_P1 == self.step_1, line_FN.flatten())

    def _finish(self, closes_BK: torch.Tensor) -> None:
        """Count finished translations; a sentence that has enough is done."""
        self._num_finished_B += closes_BK.sum(1)
        self._top_finished_B |= closes_BK[:, 0]
        is_done_B = (self._num_finished_B >= self._needed_1) & (self._top_finished_B | (self._needs_top_1 == 0))
        self.open_B.masked_fill_(is_done_B, 0)

    def _follow(self, rows_N: torch.Tensor) -> None:
        """This step's keys and values lie in slots of their own; then every row takes over its parent's past."""
        num_rows = self._rows_N.shape[0]
        own_N = (self.step_1 * num_rows + self._rows_N).int()
        _set_row(self.slots_PN, self._positions_P1 == self.step_1, own_N)
        self.slots_PN.copy_(self.slots_PN.index_select(1, rows_N))


def _set_row(table_PX: torch.Tensor, is_chosen_P1: torch.Tensor, row_X: torch.Tensor) -> None:
    """Which row it is only the device knows. Writing all is quick enough, and torch's ways to write at an index ask the
    host when told to be deterministic, which no graph allows."""
    torch.where(is_chosen_P1, row_X, table_PX, out=table_PX)
