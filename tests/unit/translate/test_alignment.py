"""From attention between pieces to pairs of words."""

from dragoman.translate.alignment import align_words, to_pharaoh
from dragoman.translate.parts import Hypothesis, Part, join


def test_pieces_become_words():
    attention = [[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.0, 0.1, 0.9]]
    pairs = align_words(["▁The", "▁hou", "se"], ["▁Das", "▁Haus", "."], attention, {})
    assert pairs == ((0, 0), (1, 1))
    assert to_pharaoh(pairs) == "0-0 1-1"
    assert to_pharaoh(()) == ""


def test_a_symbol_stands_for_all_words_of_its_text_or_for_none():
    attention = [[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    pairs = align_words(["▁", "⟦tag1⟧", "▁go", "⟦url1⟧"], ["⟦tag1⟧", "▁geh", "▁⟦url4⟧"], attention, {"⟦tag1⟧": "<a b>"})
    # The tag is two words on both sides; the invented symbol is none, and neither has an end.
    assert pairs == ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2))


def test_words_of_parts_are_counted_on():
    parts = [Part("one two", "", [1], {}), Part("www.a.b", " ", [], {}), Part(". three", "", [1], {})]
    best = [[Hypothesis("eins zwei", -1.0, ((0, 0), (1, 1)))], [Hypothesis("www.a.b", 0.0, ((0, 0),))]]
    joined = join(parts, [*best, [Hypothesis(". drei", -2.0, ((0, 0), (1, 1)))]])
    assert joined == [Hypothesis("eins zwei www.a.b. drei", -3.0, ((0, 0), (1, 1), (2, 2), (3, 3)))]
