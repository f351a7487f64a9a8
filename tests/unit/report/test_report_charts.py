import re
import xml.etree.ElementTree as ElementTree

import pytest
from report_samples import write_sample_run

from dragoman.report import charts
from dragoman.report.page import DARK
from dragoman.report.series import time_shares
from dragoman.run.reader import read_run

KEYS = [
    "training-loss", "dev-loss", "scores", "learning-rate", "gradient-norm", "speed", "step-times", "loss-by-length",
]  # fmt: skip


@pytest.fixture(scope="module")
def drawings(sample_run):
    return {figure.key: charts.to_svg(figure.chart) for figure in charts.draw_figures(sample_run)}


def test_every_chart_is_drawn(drawings):
    assert list(drawings) == KEYS
    for svg in drawings.values():
        assert ElementTree.fromstring(svg).tag.endswith("svg")


def test_nothing_in_a_chart_comes_from_elsewhere(drawings):
    for svg in drawings.values():
        addresses = set(re.findall(r"https?://[^\"' ]+", svg))
        assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
        assert not re.search(r"<(script|image|style|foreignObject)|@import|url\(", svg)


def test_the_numbers_read_as_people_write_them(drawings):
    labels = re.findall(r"<text[^>]*>([^<]+)</text>", drawings["scores"])
    assert "50" in labels
    assert not [label for label in labels if "e+" in label]


def test_the_best_evaluation_is_marked_with_its_value(drawings, sample_run):
    assert f">{max(record.bleu for record in sample_run.evals):.1f}<" in drawings["scores"]


def test_every_colour_of_a_chart_is_known_to_the_dark_page(drawings, sample_run):
    bar = charts.to_svg(charts.time_bar(time_shares(sample_run.timings)))
    used = {colour for svg in [*drawings.values(), bar] for colour in re.findall(r'(?:fill|stroke)="(#\w+)"', svg)}
    bright_enough = set(charts.PART_COLOURS.values())
    assert used <= set(DARK) | bright_enough, "black on black is no chart"
    assert charts.COLOURS["first"] in used


def test_a_picture_for_elsewhere(sample_run):
    assert charts.to_png(charts.time_bar(time_shares(sample_run.timings))).startswith(b"\x89PNG")


def test_one_step_is_a_dot(tmp_path):
    run = read_run(write_sample_run(tmp_path / "run", num_steps=1).path)
    figures = {figure.key: figure for figure in charts.draw_figures(run)}
    assert 'aria-roledescription="point"' in charts.to_svg(figures["training-loss"].chart)
