import dataclasses
import math
import random
import re
import subprocess
import sys
import time
from html.parser import HTMLParser

import pytest
from report_network_samples import write_network_run
from report_samples import sample_manifest, sample_step, write_sample_run

from dragoman.errors import DragomanError
from dragoman.report import page as page_module
from dragoman.report.diagnosis import as_worksheet
from dragoman.report.page import render_diagnosis, render_page, with_code, write_page
from dragoman.run.folder import create_run_folder
from dragoman.run.reader import read_run
from dragoman.run.records import EvalSentence, Event, to_line
from dragoman.run.writer import write_eval_sentences, write_manifest

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Checker(HTMLParser):
    """Counts tags, and fails where an element closes that is not open."""

    def __init__(self, page):
        super().__init__()
        self.open = []
        self.tags = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def text_of(page: str) -> str:
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


@pytest.fixture(scope="module")
def page(sample_run):
    return render_page(sample_run)


def test_the_page_is_whole_and_stands_alone(page):
    tags = Checker(page).tags
    assert tags.count("figure") == 12
    assert tags.count("article") == 11 + page.count('class="finding ')
    assert not {"script", "link", "img", "iframe", "object"} & set(tags)
    assert set(re.findall(r"https?://[^\"'<> ]+", page)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }


@pytest.mark.parametrize(
    "words",
    [
        "English to German",
        "phrasebook",
        "15 Nov 2026",
        "AMD EPYC 7763",
        "Finished after 300 steps: all planned steps are done.",
        "synthetic sentences",
        "not comparable with any published score",
        "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0",
        "s/step",
        "steps/s",
        "target tokens per second",
        "6.7 MB",
        "60,000 pairs of lines",
        "1.2 M",
        "MiB",
        "Der alte Kapitän hat gestern sein Boot verkauft.",
        "weights.safetensors",
        "best-loss, best-bleu, last",
        "30 steps",  # done again after the crash at 130
        "optim.warmup_steps",
        "0f3c2a9d1e",
        "dragoman train phrasebook --data data --run demo --workers 2",
    ],
)
def test_the_page_says(page, words):
    assert words in text_of(page)


def test_samples_show_first_middle_and_last(page):
    assert re.search(r"source The old captain.*?step 50 .*?step 150 .*?step 300 .*?reference Der alte", text_of(page))


def test_text_from_the_data_cannot_break_out(tmp_path):
    attack = "</style><script>alert(1)</script>"
    folder = create_run_folder(tmp_path / "run")
    manifest = sample_manifest(corpora=(attack,))
    data = dataclasses.replace(manifest.data, languages=f"en-{attack}", dev_sets={attack: 1})
    hosts = (dataclasses.replace(manifest.hosts[0], name=attack),)
    write_manifest(folder, dataclasses.replace(manifest, name=attack, data=data, hosts=hosts, git_commit=attack))
    sample = write_sample_run(tmp_path / "other", 20, 10)
    folder.steps_path.write_bytes(sample.steps_path.read_bytes())
    evals = [dataclasses.replace(record, dev_set=attack) for record in read_run(sample.path).evals]
    folder.evals_path.write_text("".join(to_line(record) for record in evals))
    write_eval_sentences(folder, 20, attack, [EvalSentence(0, attack, attack, attack, 1.0, 3)])
    folder.events_path.write_text(to_line(Event(1, 1.0, "stopped", 20, {"reason": attack})))
    page = render_page(read_run(folder.path))
    assert "<script" not in page
    assert page.count("&lt;script&gt;alert(1)") >= 6
    assert page.count("</style>") == 1
    assert "script" not in Checker(page).tags


def empty_run(tmp_path):
    folder = create_run_folder(tmp_path / "run")
    write_manifest(folder, sample_manifest())
    return folder


def test_a_run_without_a_step(tmp_path):
    text = text_of(render_page(read_run(empty_run(tmp_path).path)))
    assert "No step is recorded yet." in text
    assert "No translations are recorded." in text
    assert "No checkpoint is recorded." in text


def test_a_run_of_one_step(tmp_path):
    page = render_page(read_run(write_sample_run(tmp_path / "run", num_steps=1).path))
    Checker(page)
    assert "Finished after 1 step:" in text_of(page)


def test_a_run_that_diverged(tmp_path):
    folder = empty_run(tmp_path)
    draw = random.Random(1)
    steps = [sample_step(step, 1, 10.0 * step, draw) for step in range(1, 31)]
    steps = [*steps[:10], *(dataclasses.replace(step, loss=math.nan, nll=math.inf) for step in steps[10:])]
    folder.steps_path.write_text("".join(to_line(step) for step in steps))
    page = render_page(read_run(folder.path))
    assert "20 steps have a loss that is not a number, the first at step 11" in text_of(page)
    assert not re.search(r"NaN", page)


def test_nothing_but_nan(tmp_path):
    folder = empty_run(tmp_path)
    step = sample_step(1, 1, 10.0, random.Random(1))
    nan = dataclasses.replace(step, loss=math.nan, nll=math.nan, gradient_norm=math.nan, step_seconds=0.0)
    folder.steps_path.write_text(to_line(nan))
    Checker(render_page(read_run(folder.path)))


def test_a_run_that_was_cut_off_says_so(tmp_path):
    folder = empty_run(tmp_path)
    folder.steps_path.write_text(to_line(sample_step(1, 1, 10.0, random.Random(1))) + '{"attempt": 1, "ti')
    text = text_of(render_page(read_run(folder.path)))
    assert "the run goes on, or it was cut off" in text
    assert "steps.jsonl (1)" in text


def test_warnings_and_a_stop_are_told(tmp_path):
    folder = empty_run(tmp_path)
    warning = Event(1, 1.0, "warning", 3, {"text": "7 pairs are too long"})
    stop = Event(1, 3.0, "stopped", 3, {"reason": "interrupted"})
    spike = Event(1, 2.0, "spike", 3, {"loss": 6.0, "usual": 2.0, "text": "the loss of step 3 is 6"})
    folder.events_path.write_text("".join(map(to_line, (warning, warning, spike, stop))))
    text = text_of(render_page(read_run(folder.path)))
    assert text.count("Training warned: 7 pairs are too long") == 1
    assert "Training warned: the loss of step 3 is 6" in text
    assert "Stopped after 0 steps: it was asked to stop." in text


def test_a_real_corpus_is_not_called_synthetic(tmp_path):
    folder = create_run_folder(tmp_path / "run")
    write_manifest(folder, sample_manifest(corpora=("europarl_v7",)))
    assert "synthetic" not in text_of(render_page(read_run(folder.path)))


def test_checkpoints_that_are_gone_are_known_from_events(tmp_path):
    folder = empty_run(tmp_path)
    event = Event(1, 1.0, "checkpoint", 40, {"files": {"weights.safetensors": 2_000_000}})
    folder.events_path.write_text(to_line(event))
    text = text_of(render_page(read_run(folder.path)))
    assert "The files of step 40, as it was recorded when written" in text
    assert "2.0000 1.9073" in text


def test_an_average_is_not_the_checkpoint_to_go_on_from(tmp_path):
    folder = write_sample_run(tmp_path / "run", 20, 10)
    folder.average_checkpoint.mkdir()
    (folder.average_checkpoint / "weights.safetensors").write_bytes(b"x")
    text = text_of(render_page(read_run(folder.path)))
    assert "The files of step-00000020" in text
    assert "average" in text


def test_the_file_is_replaced_whole(sample_run, tmp_path, monkeypatch, page):
    monkeypatch.setattr(page_module, "render_diagnosis", lambda diagnosis: page)
    path = tmp_path / "report.html"
    path.write_text("old")
    write_page(sample_run, path)
    assert path.read_text().endswith("</html>\n")
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(DragomanError, match="cannot write"):
        write_page(sample_run, tmp_path / "nowhere" / "report.html")


def test_a_long_run_takes_seconds(tmp_path):
    folder = empty_run(tmp_path)
    draw = random.Random(1)
    folder.steps_path.write_text("".join(to_line(sample_step(step, 1, 0.1 * step, draw)) for step in range(1, 50_001)))
    began = time.monotonic()
    page = render_page(read_run(folder.path))
    assert time.monotonic() - began < 10
    assert len(page) < 400_000


def test_no_torch():
    modules = ", ".join(f"dragoman.report.{name}" for name in ("page", "markdown", "values"))
    code = f"import sys, {modules}; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.fixture(scope="module")
def network_page(diagnosed_network):
    return render_diagnosis(diagnosed_network)


def test_the_three_lines_stand_before_everything_else(network_page):
    text = text_of(network_page)
    order = [
        "English to German", "What limited it The network limited the run", "What to do", "What that is worth",
        "Scaling 2 hosts were", "Eleven answers", "Findings, and what to do", "Where the time went", "Curves BLEU",
        "Hosts Host", "Prediction against reality Predicted", "Sample translations", "Data Side", "Checkpoints The",
        "Recipe Every", "Provenance Attempt",
    ]  # fmt: skip
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_an_answer_has_its_verdict_its_numbers_and_how_it_was_decided(network_page):
    article = re.search(r'<article class="answer" id="question-5">.*?</article>', network_page, flags=re.S)[0]
    text = text_of(article)
    assert "Was the network the bottleneck? Yes." in text
    assert "How this was decided." in text
    assert "Confidence: high." in text
    assert "Waiting for bytes" in text
    assert 'id="link"' in article


def test_a_figure_appears_once_and_later_answers_point_to_it(network_page):
    keys = re.findall(r'<figure id="([^"]+)"', network_page)
    assert len(keys) == len(set(keys))
    assert "at question 2" in text_of(network_page)
    assert 'href="#question-2"' in network_page


def test_no_part_of_one_picture_is_found_by_another(network_page):
    """Two pictures that name a part alike would borrow each other's."""
    names = re.findall(r'\bid="([^"]+)"', network_page)
    assert len(names) == len(set(names))


def test_every_link_leads_somewhere_on_the_page(network_page):
    targets = set(re.findall(r'href="([^"]+)"', network_page))
    assert targets
    assert targets <= {f"#{name}" for name in re.findall(r'\bid="([^"]+)"', network_page)}


def test_findings_say_what_to_do(network_page):
    text = text_of(network_page)
    assert re.search(r"problem The network limits the run network-bound .*? Do this\. .*? Then\. ", text)
    assert "docs/findings.md#network-bound" in text


def test_a_quiet_run_has_no_finding_and_no_prediction(page):
    assert "No prediction is recorded: dragoman train on more than one host" in text_of(page)


def test_what_is_not_recorded_is_quieter(tmp_path):
    page = render_page(read_run(empty_run(tmp_path).path))
    assert page.count('class="answer quiet"') >= 8
    text = text_of(page)
    assert "Not recorded." in text
    assert "What would record it. The steps: dragoman train" in text


def test_a_worksheet_leaves_the_questions_open(diagnosed_network):
    page = render_diagnosis(as_worksheet(diagnosed_network))
    Checker(page)
    text = text_of(page)
    assert page.count('<p class="rule">') == 44
    for given_away in ("What limited it", "Findings", "How this was decided", "Yes.", "Confidence", "Scaling"):
        assert given_away not in text
    assert "Was the network the bottleneck?" in text
    assert "Waiting for bytes" in text
    assert page.count("<figure") == render_diagnosis(diagnosed_network).count("<figure")


def test_a_host_without_samples_is_named(tmp_path):
    run = read_run(write_network_run(tmp_path / "run", 20, sampled_hosts="a").path)
    assert "No samples came from b:" in text_of(render_page(run))


def test_every_file_may_end_in_the_middle_of_a_line(tmp_path):
    folder = write_network_run(tmp_path / "run", 20)
    torn = [folder.steps_path, folder.evals_path, folder.events_path, *folder.timing_paths(), *folder.system_paths()]
    for path in torn:
        path.write_bytes(path.read_bytes()[:-25])
    page = render_page(read_run(folder.path))
    Checker(page)
    for path in torn:
        assert f"{path.name} (1)" in text_of(page)


@pytest.mark.parametrize("gone", ["steps.jsonl", "timing", "system", "evals", "events", "pro"])
def test_any_kind_of_record_may_be_missing(tmp_path, gone):
    folder = write_network_run(tmp_path / "run", 20)
    for path in list(folder.path.iterdir()):
        if path.is_file() and path.name.startswith(gone):
            path.unlink()
    page = render_page(read_run(folder.path))
    Checker(page)
    assert page.count('class="answer') == 11


def test_numbers_stay_with_their_units_and_code_is_code():
    assert with_code("4.6 MB <b> `dragoman plan` 3 steps") == (
        "4.6\N{NO-BREAK SPACE}MB &lt;b&gt; <code>dragoman plan</code> 3 steps"
    )
    assert with_code("11.8 MB/s at 31 s") == "11.8\N{NO-BREAK SPACE}MB/s at 31\N{NO-BREAK SPACE}s"
