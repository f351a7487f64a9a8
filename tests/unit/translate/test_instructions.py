"""The widest vectors are taken where they cost no clock. In a process of its own: CTranslate2 chooses once."""

import os
import subprocess
import sys

import pytest

from dragoman.translate import instructions
from dragoman.translate.instructions import VARIABLE, has_modern_vectors, use_widest_vectors
from small_exports import write_export

OLD = "processor : 0\nmodel name : first with avx512_vbmi2 in its name\nflags : fpu avx2 avx512f\n"
MODERN = "processor : 0\nflags : fpu avx2 avx512f avx512_vbmi2\n"

SCRIPT = "import sys; from dragoman import Translator; Translator(sys.argv[1])"


@pytest.fixture
def cpu_facts(tmp_path, monkeypatch):
    """`cpu_facts(text)`: what the kernel says of the CPU."""
    monkeypatch.setenv(VARIABLE, "to be restored")
    monkeypatch.delenv(VARIABLE)

    def say(text):
        (tmp_path / "cpuinfo").write_text(text)
        monkeypatch.setattr(instructions, "CPU_FACTS", tmp_path / "cpuinfo")

    return say


def test_a_modern_cpu_uses_its_widest_vectors(cpu_facts):
    cpu_facts(MODERN)
    use_widest_vectors()
    assert os.environ[VARIABLE] == "AVX512"


def test_an_older_cpu_keeps_its_clock(cpu_facts):
    cpu_facts(OLD)
    use_widest_vectors()
    assert VARIABLE not in os.environ


def test_what_the_environment_says_stays(cpu_facts, monkeypatch):
    cpu_facts(MODERN)
    monkeypatch.setenv(VARIABLE, "AVX2")
    use_widest_vectors()
    assert os.environ[VARIABLE] == "AVX2"


def test_where_the_kernel_says_nothing_nothing_is_chosen(tmp_path, monkeypatch):
    monkeypatch.setattr(instructions, "CPU_FACTS", tmp_path / "missing")
    assert not has_modern_vectors()


@pytest.mark.skipif(not has_modern_vectors(), reason="a CPU with AVX-512 that keeps its clock")
def test_an_export_is_loaded_with_them(trained_run, tmp_path):
    export = write_export(trained_run, tmp_path / "export")
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE} | {"CT2_VERBOSE": "1"}
    command = [sys.executable, "-c", SCRIPT, export]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "Selected ISA: AVX512" in done.stderr
