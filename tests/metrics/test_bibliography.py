"""The bibliography: every measure has a work to cite, and BibTeX can be read by a strict reader."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

import calibrant as cb
from calibrant.cli.measures import list_measures
from calibrant.inference.testing import find_test
from calibrant.metrics.bibliography import OTHER_PAPERS, bibtex, entries, entry_of

TESTS = [
    find_test(name, cb.Forecasts([0, 1], [0.2, 0.6]))
    for name in ("omnibus", "spiegelhalter", "hosmer-lemeshow")
]
CITED = {name: row.citation for name, row in cb.measures().items()} | OTHER_PAPERS
FIELD = re.compile(r"^  (\w+) = \{(.+)\},?$")


@pytest.mark.parametrize("row", [*cb.measures().values(), *TESTS], ids=lambda row: row.name)
def test_every_measure_and_test_has_a_work_to_cite(row):
    entry = entry_of(row.citation)
    assert entry is not None, (
        f"{row.citation!r}: add an entry to metrics/bibliography.bib whose authors and year begin it"
    )
    assert entry.field("year") in row.citation, f"{row.citation!r} and its Entry must have the same year"


def test_keys_and_dois_are_different_and_well_formed():
    dois = [entry.field("doi") for entry in entries()]
    assert len(set(dois)) == len(dois)
    assert len({entry.key for entry in entries()}) == len(entries())
    assert all(re.fullmatch(r"10\.\d{4,5}/\S+", doi) for doi in dois)


def test_a_strict_reader_takes_every_entry():
    for block in bibtex(CITED).split("\n\n"):
        comment, head, *fields, last = block.splitlines()
        assert comment.startswith("% ")
        assert re.fullmatch(r"@(article|book|misc|inproceedings)\{\w+,", head)
        assert last == "}"
        read = dict(FIELD.fullmatch(field).groups() for field in fields)
        assert {"author", "title", "year"} <= set(read)
        assert all(value.count("{") == value.count("}") for value in read.values())


def test_the_command_line_prints_them_all_or_some():
    every = CliRunner().invoke(list_measures, ["--bibtex"])
    assert every.exit_code == 0
    assert every.stdout.count("@") == len(entries())
    some = CliRunner().invoke(list_measures, ["--bibtex", "slope", "brier"]).stdout
    assert re.findall(r"@\w+\{(\w+)", some) == ["cox1958two", "brier1950verification"]
    assert "10.1093/biomet/45.3-4.562" in some


def test_tests_and_the_net_benefit_are_cited_too():
    result = CliRunner().invoke(list_measures, ["--bibtex", "hosmer-lemeshow", "net-benefit", "omnibus"])
    assert "10.1080/03610928008827941" in result.stdout
    assert "10.1177/0272989X06295361" in result.stdout
    assert {row.name for row in TESTS} <= set(OTHER_PAPERS)
    assert "% omnibus\n@article{cox1958two" in result.stdout
    assert "% omnibus\n@misc{guy2025measuring" in result.stdout
    wrong = CliRunner().invoke(list_measures, ["--bibtex", "net-benefits"])
    assert "net-benefit" in str(wrong.exception)
