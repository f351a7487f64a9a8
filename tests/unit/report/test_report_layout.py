from dragoman.diagnose.finding import Answer
from dragoman.report.layout import Place, place_figures


def answer(number, chart):
    return Answer(number, "?", "Yes.", "", chart=chart)


def test_a_figure_stands_once_beside_the_first_answer_that_asks_for_it():
    answers = [answer(1, "a"), answer(2, "b"), answer(3, "a"), answer(4, None), answer(5, "not drawn")]
    places, left = place_figures(answers, ["a", "b", "c"])
    assert places == {1: Place("a"), 2: Place("b"), 3: Place("a", 1), 4: Place(), 5: Place()}
    assert left == ["c"]
