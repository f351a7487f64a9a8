"""`dragoman serve` as a process: a client of LibreTranslate, signals, clients that misbehave, the OpenAPI document."""

import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from libretranslatepy import LibreTranslateAPI

from command_line import run_dragoman
from dragoman.errors import DragomanError
from dragoman.translate.export_folder import read_info
from dragoman.web.serve.conversion import as_export
from small_exports import write_export

TEXT = "The child reads a letter."
LONG = "The child reads a letter. " * 700


def post(address, body, timeout=60):
    """Status, headers and JSON."""
    request = urllib.request.Request(
        f"{address}translate", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, answer.headers, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, json.load(error)


def asked(q, **more):
    return {"q": q, "source": "en", "target": "de", **more}


def raw_request(q):
    body = json.dumps(asked(q)).encode()
    head = (
        f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def is_alive(served):
    with urllib.request.urlopen(f"{served.address}health", timeout=30) as answer:
        return json.load(answer) == {"status": "ok"}


def test_a_client_of_libretranslate(start_server, tmp_path, tiny_export):
    from dragoman.translate.translator import Translator

    keys = tmp_path / "keys"
    keys.write_text("s3cret # ours\n")
    served = start_server("--api-keys", keys)
    client = LibreTranslateAPI(served.address, api_key="s3cret")
    expected = Translator(tiny_export).translate([TEXT], keep=True)[0][0].text
    assert expected and client.translate(TEXT, "en", "de", timeout=60) == expected
    assert client.languages(timeout=60)[1] == {"code": "en", "name": "English", "targets": ["de"]}
    assert client.detect("This is a text in English.", timeout=60)[0]["language"] == "en"
    with pytest.raises(urllib.error.HTTPError) as refused:
        LibreTranslateAPI(served.address, api_key="wrong").translate(TEXT, "en", "de", timeout=60)
    assert refused.value.code == 403 and "api_key" in json.load(refused.value)["error"]
    refused.value.close()
    assert "s3cret" not in served.log and TEXT not in served.log


def test_alternatives_and_alignments_of_a_real_model(start_server):
    _, _, answer = post(start_server().address, asked([TEXT, "Two."], alternatives=2, alignments=True))
    assert [len(each) for each in answer["alternatives"]] == [2, 2]
    (sentence,) = answer["alignments"][0]
    assert sentence["source"] == TEXT and sentence["target"] == answer["translatedText"][0]
    last_word = len(sentence["target"].split()) - 1
    assert {j for _, j in sentence["pairs"]} == set(range(last_word + 1)), "every word comes from somewhere"


def test_ready_without_torch(start_server):
    served = start_server()
    assert "libtorch" not in Path(f"/proc/{served.process.pid}/maps").read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_is_being_translated_is_finished(start_server, number):
    served = start_server()
    answers = []
    asking = threading.Thread(target=lambda: answers.append(post(served.address, asked(f"{TEXT} " * 150))))
    asking.start()
    wait_for_queue(served)
    assert served.end(number) == 0
    asking.join()
    status, _, answer = answers[0]
    assert status == 200 and answer["translatedText"]
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", served.port), timeout=5)


def test_a_client_that_leaves_takes_its_sentences_along(start_server):
    served = start_server("--max-queue", 5_000, "--max-characters", 1_000_000)
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(raw_request(LONG * 6))
        wait_for_queue(served)
    served.wait_for_log('"status": 499')
    assert queue_length(served) == 0


def test_too_slow_for_the_time_limit(start_server):
    served = start_server("--timeout", "0.1", "--max-queue", 5_000, "--max-characters", 1_000_000)
    status, headers, answer = post(served.address, asked(LONG * 6, alternatives=5))
    assert status == 503 and int(headers["Retry-After"]) > 0 and "within 0.1 s" in answer["error"]
    end = time.monotonic() + 20
    while queue_length(served):
        assert time.monotonic() < end


def test_two_thousand_connections(start_server):
    served = start_server()
    connections = []
    try:
        while len(connections) < 2_000:
            connections.append(socket.create_connection(("127.0.0.1", served.port), timeout=30))
        answers = set()
        for client in (connections[0], connections[-1]):
            client.sendall(raw_request(TEXT))
            answers.add(client.recv(100).split()[1])
        assert answers == {b"200", b"503"}, "the first are served, the last are told that there are too many"
    finally:
        for client in connections:
            client.close()
    end = time.monotonic() + 20
    while True:  # until the server has seen them go
        status, _, _ = post(served.address, asked(TEXT))
        if status == 200:
            break
        assert status == 503 and time.monotonic() < end


def test_slow_clients_are_let_go(start_server):
    served = start_server()
    clients = [socket.create_connection(("127.0.0.1", served.port), timeout=30) for _ in range(3)]
    silent, slow_head, slow_body = clients
    slow_head.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\n")
    slow_body.sendall(raw_request(TEXT)[:-5])
    assert is_alive(served)
    start = time.monotonic()
    assert silent.recv(100) == b"", "no request in time: closed"
    assert slow_head_end(slow_head) == b""
    assert b" 408 " in slow_body.recv(1_000)
    assert time.monotonic() - start < 25
    for client in clients:
        client.close()
    assert is_alive(served)


def slow_head_end(client):
    try:
        return client.recv(100)
    except ConnectionResetError:
        return b""


def test_a_large_body_is_refused_without_keeping_it(start_server):
    served = start_server()
    post(served.address, asked(TEXT))
    before = served.resident_bytes
    for _ in range(3):
        status, _, answer = post(served.address, asked("x" * 10_000_000))
        assert status == 413 and "larger than" in answer["error"]
    assert served.resident_bytes - before < 8_000_000
    assert post(served.address, asked(TEXT))[0] == 200


def test_what_is_no_http(start_server):
    served = start_server()
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as client:
        client.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert b"400" in client.recv(1_000)
    assert is_alive(served)


def test_the_openapi_document_is_kept(start_server, tmp_path):
    """schemathesis makes requests from the document: no failure, and every answer is one that it names."""
    served = start_server()
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{served.address}openapi.json", "--max-examples=25"]
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    options = [f"--checks={checks}", "--phases=examples,coverage,fuzzing", "--max-time=20", "--seed=1", "--no-color"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=200, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]


def test_models_that_cannot_be_served(tiny_export, trained_run, tmp_path):
    damaged = shutil.copytree(tiny_export, tmp_path / "damaged")
    (damaged / "vocab.model").write_bytes(b"no")
    nameless = write_export(trained_run, tmp_path / "nameless", ("", ""))
    for models, words in (
        ([damaged], "damaged: vocab.model has 2 bytes"),
        ([tiny_export, tiny_export], "both translate en-de"),
        ([nameless], "which languages"),
        ([tmp_path / "nothing"], "there is no model"),
        ([tiny_export, "--rate-limit", "often"], "not a rate"),
        ([tiny_export, tiny_export, "--bench"], "--bench measures one model, not 2"),
        ([tiny_export, "--bench-source", tmp_path], "--bench-source is for --bench"),
        ([tiny_export, "--api-keys", tmp_path / "none"], "cannot read the keys"),
    ):
        done = run_dragoman("serve", *models, "--port", "0", check=False)
        assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr


def test_a_run_is_converted_first(trained_run, tmp_path):
    said = []
    try:
        export = as_export(str(trained_run), tmp_path, said.append)
    except DragomanError as error:  # so little trained that int8 changes what it says
        assert "does not translate as the original" in error.message and "dragoman export" in error.hint
    else:
        assert read_info(Path(export)).quantization == "int8"
    assert "converting" in said[0]


def test_two_pairs_in_one_server(start_server, trained_run, tmp_path):
    back = write_export(trained_run, tmp_path / "back", ("de", "en"))
    served = start_server(back)
    for source, target in (("en", "de"), ("de", "en")):
        assert post(served.address, asked(TEXT, source=source, target=target))[0] == 200
    served.wait_for_log('"pair": "de-en"')  # written when the answer is gone


def queue_length(served):
    with urllib.request.urlopen(f"{served.address}metrics", timeout=30) as answer:
        text = answer.read().decode()
    return float(text.partition('dragoman_queue_sentences{pair="en-de"} ')[2].split()[0])


def wait_for_queue(served):
    end = time.monotonic() + 20
    while not queue_length(served):
        assert time.monotonic() < end
        time.sleep(0.01)
