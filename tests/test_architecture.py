"""The shape of the code, as DESIGN section 3 draws it: layers, cycles, torch, names and sizes."""

import ast
import os
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from dragoman.cli import COMMANDS

SOURCE = Path(__file__).parents[1] / "src" / "dragoman"
LAYERS = (
    ("__main__",),
    ("cli",),
    ("commands",),
    ("web",),
    ("train", "report", "launch"),
    ("translate", "diagnose"),
    ("dist",),
    ("plan",),
    ("model", "data"),
    ("run", "score"),
    ("recipe",),
    ("config",),
    ("units", "errors", "hashing", "containment", "allocator"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
TORCH_FREE = (
    "units",
    "errors",
    "hashing",
    "containment",
    "allocator",
    "config",
    "recipe",
    "run",
    "plan",
    "diagnose",
    "report",
    "score",
    "launch",
)
TORCH_FREE_FILES = ("cli", "model.size", "train.job", "translate.model_folder")
FORBIDDEN_NAMES = {"utils", "helpers", "common", "misc", "base", "manager"}
MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_LONG_FUNCTION_LINES = 400, 80, 150


@cache
def trees() -> dict[str, ast.Module]:
    """Module name -> its syntax tree; the name is relative to the package, `` for the package itself."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imported_names(tree: ast.Module) -> set[str]:
    """Absolute names of all that is imported, inside functions too; `from a import b` gives a.b."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute here"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def own_imports(module: str) -> set[str]:
    """Modules of ours that a module imports. The package itself, which holds the version, is open to all."""
    found: set[str] = set()
    for name in imported_names(trees()[module]):
        inner = name.removeprefix("dragoman.")
        if inner != name:
            found.add(inner if inner in trees() else inner.rpartition(".")[0])
    return found - {"", module}


def unit_of(module: str) -> str:
    return module.partition(".")[0]


def modules() -> list[str]:
    return [module for module in trees() if module]


def test_every_file_and_folder_has_its_layer():
    assert {unit_of(module) for module in modules()} <= LEVEL.keys()


@pytest.mark.parametrize("module", modules())
def test_imports_go_downwards_only(module):
    for other in own_imports(module):
        is_inside = unit_of(other) == unit_of(module)
        assert is_inside or LEVEL[unit_of(other)] > LEVEL[unit_of(module)], f"{module} must not import {other}"


def test_no_module_imports_itself_through_others():
    try:
        TopologicalSorter({module: own_imports(module) for module in modules()}).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("module", modules())
def test_only_dist_knows_torch_distributed(module):
    if unit_of(module) == "dist":
        return
    assert not [name for name in imported_names(trees()[module]) if name.startswith("torch.distributed")]
    uses = [
        node for node in ast.walk(trees()[module]) if isinstance(node, ast.Attribute) and node.attr == "distributed"
    ]
    assert not [node.lineno for node in uses if isinstance(node.value, ast.Name) and node.value.id == "torch"]


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_half_of_the_product_runs_without_torch():
    free = [m for m in modules() if unit_of(m) in (*TORCH_FREE, "commands") or m in TORCH_FREE_FILES]
    assert set(TORCH_FREE_FILES) <= set(free)
    code = (
        "import importlib, sys\n"
        f"for name in {free!r}:\n"
        "    importlib.import_module(f'dragoman.{name}')\n"
        "    if 'torch' in sys.modules: sys.exit(print(name))"
    )
    assert run_python(code) == "", "importing this module imports torch"


def test_help_of_every_command_imports_no_torch():
    code = (
        "import contextlib, io, sys\n"
        "from dragoman.cli import COMMANDS, app\n"
        "for name in COMMANDS:\n"
        "    sys.argv = ['dragoman', name, '--help']\n"
        "    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): app()\n"
        "    if 'torch' in sys.modules: sys.exit(print(name))"
    )
    assert run_python(code) == "", "the help of this command imports torch"


@pytest.mark.parametrize("arguments", [[], *([name] for name in COMMANDS)])
def test_help_takes_less_than_half_a_second(arguments):
    """Of processor time, and the best of a few tries: what else runs on the machine is not our doing."""
    for _ in range(5):
        seconds = processor_seconds([sys.executable, "-m", "dragoman.cli", *arguments, "--help"])
        if seconds < 0.5:
            return
    pytest.fail(f"dragoman {' '.join(arguments)} --help took {seconds:.2f} s")


def processor_seconds(command: list[str]) -> float:
    """Of one process, which must end well."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def test_packages_are_folders_with_an_empty_init():
    for folder in {path.parent for path in SOURCE.rglob("*.py")} - {SOURCE}:
        assert (folder / "__init__.py").read_bytes() == b"", folder


def test_files_are_named_after_what_they_hold():
    assert not [module for module in modules() if FORBIDDEN_NAMES & set(module.split("."))]


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_are_short_and_say_what_they_are(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_FILE_LINES
    if path.name != "__init__.py":
        assert ast.get_docstring(ast.parse(text)), "a module says what it is in its docstring"


def functions(module: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(trees()[module]) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


@pytest.mark.parametrize("module", modules())
def test_functions_are_short(module):
    for function in functions(module):
        is_long_by_nature = (module, function.name) == ("train.loop", "train") or function.name == "forward"
        limit = MAX_LONG_FUNCTION_LINES if is_long_by_nature else MAX_FUNCTION_LINES
        length = (function.end_lineno or 0) - function.lineno + 1
        assert length <= limit, f"{function.name} has {length} lines"


@pytest.mark.parametrize("module", modules())
def test_functions_are_fully_annotated(module):
    for function in functions(module):
        if any("triton.jit" in ast.unparse(decorator) for decorator in function.decorator_list):
            continue  # a kernel's parameters are pointers and numbers of no Python type
        given = function.args
        arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        bare = [a.arg for a in arguments if a and a.annotation is None and a.arg not in ("self", "cls")]
        assert not bare, f"{function.name}: {', '.join(bare)}"
        assert function.returns is not None, f"{function.name} does not say what it returns"
