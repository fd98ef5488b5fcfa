"""What a release consists of: metadata, links, versions, workflows and the schema agree with each other."""

from __future__ import annotations

import re
import runpy
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

import calibrant as cb

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
BUILD = runpy.run_path(str(ROOT / "hatch_build.py"))
RELATIVE = re.compile(r"\]\((?!https?://|#)([^)\s]+)\)")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def metadata() -> dict:
    found: dict = {}
    BUILD["PublishedMetadata"](str(ROOT), {}).update(found)
    return found


def test_links_of_the_readme_point_to_files():
    targets = RELATIVE.findall(text("README.md"))
    assert len(targets) > 10
    assert [name for name in targets if not (ROOT / name.split("#")[0]).exists()] == []


def test_a_release_has_addresses_and_absolute_links(monkeypatch):
    monkeypatch.setenv("CALIBRANT_URL", "https://example.org/someone/calibrant/")
    found = metadata()
    readme = found["readme"]["text"]
    assert RELATIVE.findall(readme) == []
    tag = f"v{cb.__version__}"
    assert f"](https://example.org/someone/calibrant/blob/{tag}/docs/paths.md)" in readme
    assert f"](https://example.org/someone/calibrant/raw/{tag}/docs/report.png)" in readme
    assert found["urls"]["Source"] == "https://example.org/someone/calibrant"
    assert all(url.startswith("https://example.org/someone/calibrant") for url in found["urls"].values())


def test_no_address_is_invented(monkeypatch):
    monkeypatch.delenv("CALIBRANT_URL", raising=False)
    found = metadata()
    assert "urls" not in found
    assert found["readme"]["text"] == text("README.md")


def test_versions_and_dates_agree():
    version, date = re.search(
        r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", text("CHANGELOG.md"), re.MULTILINE
    ).groups()
    cited = yaml.safe_load(text("CITATION.cff"))
    assert version == cb.__version__ == cited["version"]
    assert date == str(cited["date-released"])
    assert cited["license"] == PROJECT["license"]


def test_the_extra_all_is_report_sklearn_boost_and_logs():
    assert PROJECT["optional-dependencies"]["all"] == ["calibrant[report,sklearn,boost,logs]"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_is_well_formed(path):
    flow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", True, "permissions", "jobs"} <= set(flow)  # YAML reads the key `on` as true
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    for job in flow["jobs"].values():
        assert job["runs-on"] == "ubuntu-latest"
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@[\w./-]+", step.get("uses", "a/b@v1"))
            for target in re.findall(r"make ([a-z-]+)", step.get("run", "")):
                assert target in targets, target


def test_every_python_that_is_promised_is_tried():
    flow = yaml.safe_load(text(".github/workflows/test.yml"))
    tried = flow["jobs"]["test"]["strategy"]["matrix"]["python"]
    promised = [line.split(":: ")[-1] for line in PROJECT["classifiers"] if ":: Python :: 3." in line]
    assert set(promised) <= set(tried)
    assert PROJECT["requires-python"] == f">={promised[0]}"


def test_the_schema_ships_inside_the_package():
    assert files("calibrant.evaluation").joinpath("evaluation.schema.json").is_file()


def test_the_sdist_holds_what_its_tests_need():
    listed = tomllib.loads(text("pyproject.toml"))["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert all((ROOT / name.removeprefix("/")).exists() for name in listed)
    needed = {"src", "tests", "docs", "benchmarks", "examples", "reproduce", "hatch_build.py", "Makefile"}
    assert {f"/{name}" for name in needed} <= set(listed)
