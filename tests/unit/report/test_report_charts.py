import re
import xml.etree.ElementTree as ElementTree

import pytest
from report_samples import write_sample_run

from dragoman.diagnose.facts import gather_facts
from dragoman.report.charts.drawing import bars, to_png, to_svg
from dragoman.report.charts.figures import draw_figures
from dragoman.report.charts.machines import host_panels
from dragoman.report.charts.steps import time_bar
from dragoman.report.palette import COLOURS, DARK, PART_COLOURS
from dragoman.report.series import MAX_BUCKETS
from dragoman.run.reader import read_run

ONE_HOST = [
    "time-bar", "dev-loss", "scores", "gpu", "learning-rate", "data", "checkpoint", "step-times",
    "training-loss", "gradient-norm", "speed", "loss-by-length",
]  # fmt: skip


@pytest.fixture(scope="module")
def figures(diagnosed, diagnosed_network):
    bar = time_bar(diagnosed_network.summary.time_shares)
    found = {f"net {key}": figure.chart for key, figure in draw_figures(diagnosed_network.facts).items()}
    found |= {key: figure.chart for key, figure in draw_figures(diagnosed.facts).items()}
    found |= {figure.key: figure.chart for figure in host_panels(diagnosed_network.facts)}
    return {**found, "bar": bar}


@pytest.fixture(scope="module")
def drawings(figures):
    return {key: to_svg(chart) for key, chart in figures.items()}


def labels_of(svg):
    return re.findall(r"<text[^>]*>([^<]+)</text>", svg)


def test_every_chart_is_drawn(drawings, diagnosed, diagnosed_network):
    assert list(draw_figures(diagnosed.facts)) == ONE_HOST
    assert set(draw_figures(diagnosed_network.facts)) == {*ONE_HOST, "link", "traffic"}
    for svg in drawings.values():
        assert ElementTree.fromstring(svg).tag.endswith("svg")


def test_every_chart_is_valid_vega_lite(figures):
    """They are drawn without Altair's checks, which take long."""
    for chart in figures.values():
        chart.to_dict(validate=True)


def test_nothing_in_a_chart_comes_from_elsewhere(drawings):
    for svg in drawings.values():
        addresses = set(re.findall(r"https?://[^\"' ]+", svg))
        assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
        assert not re.search(r"<(script|image|style|foreignObject)|@import|url\(", svg)


def test_the_numbers_read_as_people_write_them(drawings):
    assert "50" in labels_of(drawings["scores"])
    assert not [label for svg in drawings.values() for label in labels_of(svg) if "e+" in label or "NaN" in label]


def test_the_best_evaluation_is_marked_with_its_value(drawings, sample_run):
    assert f">{max(record.bleu for record in sample_run.evals):.1f}<" in drawings["scores"]


def test_the_link_shows_what_it_carries_and_says_what_the_card_claims(drawings, diagnosed_network):
    figure = draw_figures(diagnosed_network.facts)["link"]
    assert "measured before the run: 11.8 MB/s (94.4 Mb/s)" in labels_of(drawings["net link"])
    assert "The card says 1 Gb/s (125 MB/s), far above this chart." in figure.caption
    assert {"sent", "received"} <= set(labels_of(drawings["net link"]))


def test_the_step_stands_against_its_floor(drawings):
    labels = labels_of(drawings["net traffic"])
    assert {"floor: bytes over capacity", "step as measured", "step on a link 10 times as fast"} <= set(labels)
    assert labels.count("31 s") == 2


def test_the_learning_rate_has_the_formula_beside_it(figures, diagnosed_network):
    """The other sample's rates are not those of its recipe: the rings lie off the line."""
    layers = figures["net learning-rate"].to_dict(validate=False)["layer"]
    recorded = {row["x"]: row["value"] for row in layers[0]["data"]["values"]}
    rings = layers[-1]["data"]["values"]
    assert len(rings) == 25
    assert all(row["value"] == pytest.approx(recorded[row["x"]]) for row in rings)
    off = figures["learning-rate"].to_dict(validate=False)["layer"][-1]["data"]["values"]
    assert off[-1]["value"] != pytest.approx(diagnosed_network.facts.steps.learning_rate[-1])


def test_both_directions_of_a_host_have_their_own_colour(drawings):
    assert COLOURS["second"] in drawings["host-a"]
    assert COLOURS["first"] in drawings["host-a"]


def test_every_colour_of_a_chart_is_known_to_the_dark_page(drawings):
    used = {colour for svg in drawings.values() for colour in re.findall(r'(?:fill|stroke)="(#\w+)"', svg)}
    bright_enough = set(PART_COLOURS.values())
    assert used <= set(DARK) | bright_enough, "black on black is no chart"
    assert COLOURS["first"] in used


def test_a_picture_for_elsewhere(figures):
    assert to_png(figures["bar"]).startswith(b"\x89PNG")


def test_one_step_is_a_dot(tmp_path):
    facts = gather_facts(read_run(write_sample_run(tmp_path / "run", num_steps=1).path))
    figures = draw_figures(facts)
    assert 'aria-roledescription="point"' in to_svg(figures["training-loss"].chart)


def test_long_series_are_shortened_before_they_are_drawn(figures):
    def num_rows(part):
        own = len(part.get("data", {}).get("values", []))
        return own + sum(num_rows(inner) for name in ("layer", "vconcat") for inner in part.get(name, []))

    for key, chart in figures.items():
        rows = num_rows(chart.to_dict(validate=False))
        assert rows <= 6 * MAX_BUCKETS, key


def test_a_long_label_has_room(drawings):
    svg = to_svg(bars([{"name": "a", "value": 1.0, "label": "23 h 05 min, under 0.1 %", "colour": "#2563a8"}]))
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1])
    moves = [float(x) for x in re.findall(r'<text[^>]*transform="translate\(([\d.]+)', svg)]
    assert max(moves) + 7 * len("23 h 05 min, under 0.1 %") <= width
