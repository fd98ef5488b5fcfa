"""The package as a whole: public names, what importing loads, which way imports point."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import calibrant as cb
from calibrant import public_names

SOURCE = Path(cb.__file__).parent
HEAVY = ["scipy", "numba", "pandas", "polars", "pyarrow", "duckdb", "narwhals", "rich", "altair", "jinja2"]
HEAVY += ["sklearn", "torch", "pyspark"]

PACKAGES = [
    *("kernels", "inputs", "frames", "columns", "clusters", "censoring", "records", "forecasts", "fits"),
    *("metrics", "inference", "abstention", "groups", "recalibration", "online", "truthfulness"),
    *("io", "sketch", "distributions", "report", "evaluation", "logs", "sklearn", "cli"),
]
FREE = {"errors", "results", "formatting", "parallel", "files", "public_names", "calibrant"}
BELOW = {package: set(PACKAGES[:rank]) | {package} for rank, package in enumerate(PACKAGES)}
BELOW["losses"] = set()  # needs nothing but PyTorch


def test_public_names_are_sorted_and_exist():
    assert cb.__all__ == sorted(cb.__all__), "sort __all__ of calibrant/__init__.py"
    for name in cb.__all__:
        assert getattr(cb, name) is not None
        assert (getattr(cb, name).__doc__ or "").strip(), name


def test_no_file_takes_the_place_of_a_public_name():
    """Importing calibrant.groups.name makes the module the attribute `name` of calibrant.groups."""
    for module, files in public_names.PUBLIC.items():
        for name in public_names.homes(module):
            place = SOURCE.joinpath(*module.split("."), name)
            assert not place.is_dir(), f"{module}: {name}"
            assert not place.with_suffix(".py").exists(), f"{module}: {name} of {sorted(files)}"


def test_packages_load_when_first_used():
    code = "import sys, calibrant; print([m for m in sys.modules if m.startswith('calibrant.groups')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"
    assert 35 <= len(cb.__all__) <= 45
    assert set(cb.__all__) <= set(dir(cb)) | {"online"}
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        cb.nonsense  # noqa: B018


def test_importing_loads_nothing_heavy():
    code = f"import sys, calibrant; print([m for m in {HEAVY!r} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


def seconds(code: str) -> float:
    """Best of five, in seconds of the processor."""
    timed = f"import time; t = time.process_time(); {code}; print(time.process_time() - t)"
    runs = [
        float(
            subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True).stdout
        )
        for _ in range(5)
    ]
    return min(runs)


def test_importing_is_quick():
    """Seconds of a busy machine are longer, those of the yardstick too."""
    numpy = seconds("import numpy")
    assert seconds("import numpy, calibrant") < 4 * numpy
    assert seconds("import calibrant.cli.main") < 4 * numpy


def imported(path: Path) -> set[str]:
    """The packages of calibrant that a file imports, lazily or not."""
    packages = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "calibrant":
            parts = node.module.split(".")
            packages |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            packages |= {a.name.split(".")[1] for a in node.names if a.name.startswith("calibrant.")}
    return packages


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if package in {"__init__", "__main__", "demo"} | FREE:
        return
    allowed = BELOW.get(package, set()) | FREE
    allowed |= {"demo", "__version__"} if package in ("cli", "report", "evaluation") else set()
    above = sorted(imported(path) - allowed)
    assert not above, f"{package} may import the packages before it in PACKAGES of this file, and not {above}"


def module_files() -> dict[str, Path]:
    names = {
        ".".join(("calibrant", *p.relative_to(SOURCE).with_suffix("").parts)): p for p in SOURCE.rglob("*.py")
    }
    return {name.removesuffix(".__init__"): path for name, path in names.items()}


def imported_modules(path: Path, modules: dict[str, Path]) -> set[str]:
    """The files that a file imports, inside functions too; imports for type checkers alone never run."""
    names: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for part in node.orelse:
                visit(part)
            return
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "calibrant":
            inner = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            names.update(full if full in modules else node.module for full in inner.values())
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names if alias.name in modules)
        for part in ast.iter_child_nodes(node):
            visit(part)

    visit(ast.parse(path.read_text()))
    return names


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Every way back that a search in depth meets; none if and only if the graph has no cycle."""
    state: dict[str, bool] = {}  # True while on the path
    found: list[list[str]] = []

    def go(name: str, path: list[str]) -> None:
        state[name] = True
        for below in sorted(graph.get(name, ())):
            if below not in state:
                go(below, [*path, below])
            elif state[below]:
                found.append([*path[path.index(below) :], below])
        state[name] = False

    for name in sorted(graph):
        if name not in state:
            go(name, [name])
    return found


def test_imports_have_no_cycle_not_even_a_lazy_one():
    modules = module_files()
    graph = {name: imported_modules(path, modules) for name, path in modules.items()}
    assert sum(map(len, graph.values())) > 300  # the search reads the package
    assert [" -> ".join(cycle) for cycle in cycles(graph)] == []


def test_the_search_for_cycles_finds_them():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [["b", "c", "b"]]
    assert cycles({"a": {"a"}}) == [["a", "a"]]


SNIPPET = """
import calibrant as cb

value: float = cb.binned_calibration_error([0, 1], [0.2, 0.7], bins=10, sample_weight=[1, 2])
same: float = cb.smooth_calibration_error(cb.Forecasts([0, 1], [0.2, 0.7]), lipschitz=2.0)
cb.binned_calibration_error([0, 1], [0.2, 0.7], bin=10)
cb.smooth_calibration_error([0, 1], [0.2, 0.7], lipschitz="steep")
cb.kuiper_error([0, 1], [0.2, 0.7], bins=10)
"""


@pytest.mark.slow
def test_type_checkers_know_the_options_of_each_measure(tmp_path):
    pytest.importorskip("mypy")
    path = tmp_path / "snippet.py"
    path.write_text(SNIPPET)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(tmp_path)]
    found = subprocess.run(
        [*command, str(path)],
        capture_output=True,
        text=True,
        env={"MYPYPATH": str(SOURCE.parent), "PATH": ""},
    ).stdout
    lines = [int(line.split(":")[1]) for line in found.splitlines() if "error" in line]
    assert lines == [6, 7, 8], found
    assert (SOURCE / "py.typed").exists()


@cache
def homes(kind: type[ast.ClassDef] | type[ast.FunctionDef]) -> dict[str, set[Path]]:
    """Return the files that define each public class or function at the level of a module."""
    found: dict[str, set[Path]] = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, kind) and not node.name.startswith("_"):
                found.setdefault(node.name, set()).add(file.relative_to(SOURCE))
    return found


def test_a_class_name_has_one_meaning():
    """Two public classes of one name would leave a reader guessing which is meant."""
    assert {name: files for name, files in homes(ast.ClassDef).items() if len(files) > 1} == {}


def namesake(name: str, file: Path) -> bool:
    """Return whether a function shares a user-facing name with the function that does the work.

    A command is in the file of its name. A method of recalibration is named like its
    fit, or like the public function that reduces several classes in the same way.
    """
    if file == Path("cli", f"{name}.py") or (name, file.name) == ("reliability_diagram", "reliability.py"):
        return True  # the public function draws the chart of its name
    others = homes(ast.FunctionDef)[name] - {file}
    return file.parent == Path("recalibration", "methods") and all(
        hasattr(cb, name) or other.parent in (Path("fits"), file.parent) for other in others
    )


def test_a_function_name_has_one_meaning():
    """Two functions of one name could be distinguished only by their imports."""
    several = {name: files for name, files in homes(ast.FunctionDef).items() if len(files) > 1}
    meanings = {name: [file for file in files if not namesake(name, file)] for name, files in several.items()}
    assert {name: files for name, files in meanings.items() if len(files) > 1} == {}


def test_stubs_are_what_the_list_of_public_names_says():
    from runpy import run_path

    written = run_path(str(SOURCE.parents[1] / "docs" / "make_stubs.py"))["stubs"]()
    stale = [path.name for path, text in written.items() if not path.exists() or path.read_text() != text]
    assert not stale, "run python docs/make_stubs.py"
