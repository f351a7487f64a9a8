"""Where long sentences are cut."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.translate.cutting import cut


def test_the_best_place_is_taken():
    def fits(text: str) -> bool:
        return len(text) <= 40

    assert cut("Short enough.", fits) == ["Short enough."]
    assert cut("The first sentence ends here. The second one, too, is short.", fits) == [
        "The first sentence ends here.",
        "The second one, too, is short.",
    ]
    assert cut("a clause that goes on and on, and another clause that does", fits) == [
        "a clause that goes on and on,",
        "and another clause that does",
    ]
    assert cut("x" * 100, fits) == ["x" * 25] * 4


@given(st.text(st.characters(codec="utf-8"), max_size=300), st.integers(1, 50))
def test_all_parts_fit_and_nothing_is_lost(text, limit):
    line = " ".join(text.split())
    parts = cut(line, lambda part: len(part) <= limit)
    assert all(len(part) <= limit for part in parts)
    assert "".join("".join(parts).split()) == "".join(line.split())
