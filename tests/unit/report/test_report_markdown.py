import dataclasses
import re

import pytest
from report_samples import sample_manifest, write_sample_run

from dragoman.errors import DragomanError
from dragoman.report.diagnosis import as_worksheet, diagnose
from dragoman.report.markdown import escaped, markdown_of, table_text, write_markdown
from dragoman.run.folder import create_run_folder
from dragoman.run.reader import read_run
from dragoman.run.writer import write_manifest


@pytest.fixture(scope="module")
def text(diagnosed_network):
    return markdown_of(diagnosed_network, "report-files")[0]


def test_the_three_lines_come_before_everything_else(text):
    order = ["**What limited it.** The network", "**What to do.**", "**What that is worth.**", "**Scaling.**", "### 1."]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_it_has_the_parts_of_the_page(text):
    heads = re.findall(r"^## (.+)$", text, flags=re.M)
    assert heads == [
        "Eleven answers", "Findings, and what to do", "Where the time went", "Curves", "Hosts",
        "Prediction against reality", "Sample translations", "Data", "Checkpoints", "Recipe", "Provenance",
    ]  # fmt: skip
    assert len(re.findall(r"^### \d+\. ", text, flags=re.M)) == 11
    assert "**Yes.** Of a mean step of 31 s" in text
    assert "(`network-bound`, problem)" in text
    assert "| Bytes out of a host in a step | 365 MB | 365 MB | 1.00 |" in text


def test_every_picture_is_written_and_every_file_is_shown(tmp_path):
    diagnosis = diagnose(read_run(write_sample_run(tmp_path / "run", 20, 10).path))
    write_markdown(diagnosis, tmp_path / "mine.md")
    text = (tmp_path / "mine.md").read_text()
    shown = re.findall(r"!\[[^\]]*\]\(mine-files/([^)]+)\)", text)
    assert len(shown) == len(set(shown)) >= 12
    assert sorted(shown) == sorted(entry.name for entry in (tmp_path / "mine-files").iterdir())
    assert all((tmp_path / "mine-files" / name).read_bytes().startswith(b"\x89PNG") for name in shown)


def test_a_worksheet_leaves_the_questions_open(diagnosed_network):
    text = markdown_of(as_worksheet(diagnosed_network), "f")[0]
    assert text.count("### ") == 11
    assert text.count("\\_" * 72) == 44
    for given_away in ("What limited it", "Findings", "How this was decided", "**Yes.**", "Confidence"):
        assert given_away not in text
    assert "Waiting for bytes" in text
    assert "f/link.png" in text


def test_text_from_the_data_stays_text(tmp_path):
    attack = "<img src=x> | [a](http://b) `c` *d*\n# e"
    folder = create_run_folder(tmp_path / "run")
    manifest = sample_manifest()
    data = dataclasses.replace(manifest.data, dev_sets={attack: 1})
    write_manifest(folder, dataclasses.replace(manifest, name=attack, data=data))
    text = markdown_of(diagnose(read_run(folder.path)), "f")[0]
    assert "<img" not in text
    assert "\n# e" not in text
    assert "[a](" not in text
    assert "\\| \\[a\\](http://b) \\`c\\` \\*d\\*" in text


def test_cells_cannot_break_a_table():
    assert table_text(("A", "B"), [("x|y", "z\nw")]) == "| A | B |\n| --- | --- |\n| x\\|y | z w |"
    assert table_text(("A",), []) == ""
    assert escaped("a_b & <c>") == "a\\_b &amp; &lt;c&gt;"


def test_where_nothing_can_be_written(diagnosed, tmp_path):
    (tmp_path / "report-files").write_text("in the way")
    with pytest.raises(DragomanError, match="cannot write"):
        write_markdown(diagnosed, tmp_path / "report.md")
