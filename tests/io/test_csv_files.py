"""CSV files are read as they are written: Python's csv module and float() are the oracle."""

from __future__ import annotations

import csv
import gzip
import io
import math
import random

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from read_files import read_categories, read_columns

from calibrant import Sketch
from calibrant.errors import CalibrantError, InvalidInputError, UnknownNameError, UnreadableFileError
from calibrant.io.csv_dialect import read_dialect
from calibrant.io.read import in_pieces_or_whole
from calibrant.io.session import connect
from calibrant.io.sources import TEXT_FOR_MISSING, Notation, csv_scan, unreadable

NAMES = ["y", "p", "P", "a b", 'say "p"', "ü", "p,q", "#n", "comment"]
numbers = st.one_of(
    st.sampled_from(
        ["0", "1", "0.0", "1.0", "00", "1.", ".5", "+0.5", "-0", "1e-3", "5E-1", "0.1e1", "1e-320"]
    ),
    st.floats(0, 1).map(repr),
    st.integers(0, 100).map(lambda k: f"{k / 100:.2f}"),
    st.sampled_from(TEXT_FOR_MISSING),
)
blanks = st.sampled_from(["", "", "", " ", "  "])
number_cells = st.tuples(blanks, numbers, blanks).map("".join)
text_cells = st.text(st.sampled_from("ab#,;\"'\n |\t%ü\\0."), max_size=6)


def value(cell):
    text = cell.strip()
    return math.nan if text in TEXT_FOR_MISSING else float(text)


@st.composite
def tables(draw):
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
    numeric = draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names)))
    numeric[0] = True
    row = st.tuples(*(number_cells if is_number else text_cells for is_number in numeric))
    rows = draw(st.lists(row, min_size=1, max_size=12))
    if len(names) == 1:  # an empty line of a single column is an empty line, as in the csv module
        rows = [row for row in rows if row[0]] or [("0",)]
    return names, numeric, rows


def written(names, rows, separator, ending, quoting):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator=ending, quoting=quoting)
    writer.writerows([names, *rows])
    return out.getvalue()


@settings(max_examples=60, deadline=None)
@given(
    table=tables(),
    separator=st.sampled_from(",;\t|"),
    ending=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    mark=st.booleans(),
    last=st.booleans(),
    packed=st.booleans(),
    seed=st.integers(0, 9),
)
def test_any_csv_is_read_as_the_csv_module_reads_it(
    tmp_path_factory, table, separator, ending, quoting, mark, last, packed, seed
):
    names, numeric, rows = table
    path = tmp_path_factory.mktemp("csv") / ("x.csv.gz" if packed else "x.csv")
    random.Random(seed).shuffle(rows)
    text = ("\ufeff" if mark else "") + written(names, rows, separator, ending, quoting)
    data = (text if last else text.removesuffix(ending)).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    wanted = [name for name, is_number in zip(names, numeric, strict=True) if is_number]
    found = read_columns(path, wanted)
    for name in wanted:
        expected = [value(row[names.index(name)]) for row in rows]
        np.testing.assert_array_equal(found[name], expected)


@settings(max_examples=25, deadline=None)
@given(table=tables(), ending=st.sampled_from(["\n", "\r\n"]), seed=st.integers(0, 99))
def test_any_chunking_gives_the_same_cells(tmp_path_factory, table, ending, seed):
    names, _, rows = table
    rows = random.Random(seed).choices(rows, k=400)
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    path.write_bytes(written(names, rows, ",", ending, csv.QUOTE_MINIMAL).encode())
    longest = max(len(",".join(row).encode()) for row in rows) * 2 + 64
    chunks = f", buffer_size = {longest}, max_line_size = {longest})"

    def read(parallel):
        scan = csv_scan(read_dialect(path, names), [str(path)], parallel).removesuffix(")") + chunks
        try:
            return connection.execute(f"SELECT * FROM {scan}").fetchall()
        except duckdb.Error as error:
            raise unreadable([path], error) from None

    with connect([path]) as connection:
        found = in_pieces_or_whole(read)
    assert found == [tuple(row) for row in csv.reader(io.StringIO(path.read_text(), newline="")) if row][1:]


def two_columns(path, rows, header="y,p"):
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_integers_first_do_not_round_what_follows(tmp_path):
    rows = ["0,0"] * 30_000 + ["1,0.75"] * 10_000
    path = two_columns(tmp_path / "x.csv", rows)
    assert read_columns(path, ["p"])["p"].mean() == 0.1875
    sketch = Sketch.from_file(path, outcome="y", prediction="p")
    assert sketch.forecasts().values.tolist() == [0, 0.75]
    backwards = Sketch.from_file(two_columns(tmp_path / "z.csv", rows[::-1]), outcome="y", prediction="p")
    assert np.array_equal(backwards.contents.table.sums, sketch.contents.table.sums)


def test_integers_first_do_not_round_json_lines(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"y":0,"p":0}\n' * 30_000 + '{"y":true,"p":0.75}\n{"y":1,"p":"0.5"}\n')
    assert read_columns(path, ["y", "p"])["p"].tolist()[-2:] == [0.75, 0.5]
    assert Sketch.from_file(path, outcome="y", prediction="p").forecasts().values.tolist() == [0, 0.5, 0.75]


def test_parquet_files_of_other_types_do_not_round(tmp_path):
    import polars as pl

    pl.DataFrame({"y": [0, 1], "p": [0, 1]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"p": [0.25, 0.75], "y": [False, True]}).write_parquet(tmp_path / "b.parquet")
    found = read_columns(tmp_path / "*.parquet", ["y", "p"])
    assert found["p"].tolist() == [0, 1, 0.25, 0.75]
    assert found["y"].tolist() == [0, 1, 0, 1]
    sketch = Sketch.from_file(tmp_path / "*.parquet", outcome="y", prediction="p")
    assert sketch.forecasts().values.tolist() == [0, 0.25, 0.75, 1]


def test_rows_that_begin_with_a_hash_are_rows(tmp_path):
    path = two_columns(tmp_path / "x.csv", ["a,0.1", "#b,0.2", "# c,0.3"], "name,p")
    assert read_columns(path, ["p"])["p"].tolist() == [0.1, 0.2, 0.3]
    assert read_categories(path, ["name"])["name"].tolist() == ["a", "#b", "# c"]


def test_globs_match_columns_by_name(tmp_path):
    two_columns(tmp_path / "a.csv", ["0,0.25"])
    two_columns(tmp_path / "b.csv", ["0.75,1"], "p,y")
    two_columns(tmp_path / "c.csv", ["x;0,5;1"], "z;p;y")
    found = read_columns(tmp_path / "[ab].csv", ["y", "p"])
    assert found["p"].tolist() == [0.25, 0.75]
    assert found["y"].tolist() == [0, 1]
    sketch = Sketch.from_file(tmp_path / "[ab].csv", outcome="y", prediction="p")
    assert (sketch.n, sketch.forecasts().values.tolist()) == (2, [0.25, 0.75])
    comma = read_columns(tmp_path / "c.csv", ["p"], Notation(decimal=","))
    assert comma["p"].tolist() == [0.5]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("a,b\n1,0.5\n", r"column of .*z.csv must be one of a, b; got 'y'"),
        ("1,0.5\n0,0.25\n", r"z.csv' must have a header; got 1, 0.5 as its first line"),
        ("y,p,p\n1,0.5,0.6\n", r"z.csv' must name each column once; got 2 columns called 'p'. Hint: rename"),
        ("y,p\n1,0.5,7\n", r"must have the same number of cells in every row; got 3 cells in line 2"),
        ("y,p\n1\n", r"must have the same number of cells in every row; got 1 cell in line 2"),
        ("y,p\n1,'0.5\n", 'must be numeric; got the text "\'0.5"'),
        ('y,p\n1,"0.5\n', "quote"),
    ],
)
def test_files_of_a_glob_that_do_not_fit_are_refused_by_name(tmp_path, second, message):
    two_columns(tmp_path / "a.csv", ["0,0.25"])
    (tmp_path / "z.csv").write_text(second)
    with pytest.raises(CalibrantError, match=message):
        read_columns(tmp_path / "*.csv", ["y", "p"])
    with pytest.raises(CalibrantError, match=message):
        Sketch.from_file(tmp_path / "*.csv", outcome="y", prediction="p")


def test_names_of_folders_are_only_names(tmp_path):
    folder = tmp_path / "p=0.9"
    folder.mkdir()
    two_columns(folder / "x.csv", ["0,0.25"])
    assert read_columns(folder / "*.csv", ["p"])["p"].tolist() == [0.25]
    with pytest.raises(UnknownNameError):
        read_columns(two_columns(folder / "y.csv", ["0"], "y"), ["p"])


def test_a_file_wins_over_the_glob_its_name_could_be(tmp_path):
    two_columns(tmp_path / "a[1].csv", ["0,0.25"])
    two_columns(tmp_path / "a1.csv", ["0,0.75"])
    assert read_columns(tmp_path / "a[1].csv", ["p"])["p"].tolist() == [0.25]
    assert Sketch.from_file(tmp_path / "a[1].csv", outcome="y", prediction="p").forecasts().values == [0.25]
    (tmp_path / "a[1].csv").unlink()
    assert read_columns(tmp_path / "a[1].csv", ["p"])["p"].tolist() == [0.75]


def test_names_that_differ_in_case_are_two_columns(tmp_path):
    path = two_columns(tmp_path / "x.csv", ["0,0.25,0.75"], "y,p,P")
    assert read_columns(path, ["P", "p"])["P"].tolist() == [0.75]
    assert Sketch.from_file(path, outcome="y", prediction="P").forecasts().values == [0.75]


HINTS = [
    ('"0,75"', "this is a decimal comma; pass --decimal ,"),
    ("75%", "this is a percentage; pass --percent"),
    ("75.5 %", "this is a percentage; pass --percent"),
    ('"1,000.5"', "without separators of thousands"),
    ("yes", "map the labels to 0 and 1"),
    ("n/a", "leave them empty where the value is missing"),
]


@pytest.mark.parametrize(("cell", "hint"), HINTS)
def test_cells_that_are_no_numbers_get_their_own_hint(tmp_path, cell, hint):
    path = two_columns(tmp_path / "x.csv", ["0,0.5"] * 3 + [f"1,{cell}"] * 2)
    with pytest.raises(
        InvalidInputError, match=rf"column 'p' must be numeric; got .* in row 3 \(2 rows\).*{hint}"
    ):
        read_columns(path, ["p"])
    with pytest.raises(InvalidInputError, match=rf"column 'p' must be numeric; got .*\(2 rows\).*{hint}"):
        Sketch.from_file(path, outcome="y", prediction="p", missing="drop")


def test_decimal_commas_and_percent_signs_are_read_when_asked_for(tmp_path):
    path = two_columns(tmp_path / "x.csv", ["0;0,75", "1;25 %", "1;1", "0;12,5%"], "y;p")
    found = read_columns(path, ["p"], Notation(decimal=",", percent=True))
    assert found["p"].tolist() == [0.75, 0.25, 1.0, 0.125]
    with pytest.raises(InvalidInputError, match=r"got the text '0.5'.*decimal point"):
        read_columns(two_columns(tmp_path / "z.csv", ["0;0.5"], "y;p"), ["p"], Notation(decimal=","))


ENCODINGS = [("utf-16", "got UTF-16"), ("utf-32", "got UTF-32"), ("latin-1", "got byte 0xfc in line 3")]


@pytest.mark.parametrize(("encoding", "message"), ENCODINGS)
def test_other_encodings_are_named(tmp_path, encoding, message):
    path = tmp_path / "x.csv"
    path.write_bytes("y,p,n\n1,0.5,a\n0,0.5,ü\n".encode(encoding))
    with pytest.raises(UnreadableFileError, match=rf"must be UTF-8; {message}.*iconv -f"):
        read_categories(path, ["n"])


def test_empty_lines_are_no_rows(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("\n\ny,p\n\n1,0.5\n\n\n0,0.25\n\n")
    assert read_columns(path, ["p"])["p"].tolist() == [0.5, 0.25]


TYPES = [
    (["1", "2", ""], [1.0, 2.0, math.nan]),
    (["1", "2.5"], [1.0, 2.5]),
    (["007", "10"], ["007", "10"]),
    (["true", "False"], [True, False]),
    (["1", "x", "NA", ""], ["1", "x", "NA", None]),
    (["1", "nan", "NA", ""], [1.0, math.nan, math.nan, math.nan]),
    (["1e-3", "0.5"], [0.001, 0.5]),
]


@pytest.mark.parametrize(("cells", "expected"), TYPES)
def test_the_whole_column_decides_what_a_category_is(tmp_path, cells, expected):
    for turn in (1, -1):
        path = two_columns(tmp_path / "x.csv", [f"{cell},1" for cell in cells[::turn]], "c,p")
        found = read_categories(path, ["c"])["c"].tolist()
        assert (
            found == pytest.approx(expected[::turn], nan_ok=True)
            if math.nan in expected
            else found == expected[::turn]
        )


def test_dates_are_dates_and_days_that_do_not_exist_are_text(tmp_path):
    path = two_columns(tmp_path / "x.csv", ["2024-01-31,1", ",2"], "c,p")
    found = read_categories(path, ["c"])["c"]
    assert found.dtype.kind == "M"
    assert np.isnat(found[1])
    path = two_columns(tmp_path / "x.csv", ["2024-02-31,1"], "c,p")
    assert read_categories(path, ["c"])["c"].tolist() == ["2024-02-31"]


def zstandard(path, data):
    with pa.CompressedOutputStream(str(path), "zstd") as file:
        file.write(data)
    return path


def test_the_header_of_a_zstandard_file_may_come_late_and_be_long(tmp_path):
    text = b'\n\n"y",p,"a long\nname"\n1,0.5,x\n0,0.25,y\n'
    path = zstandard(tmp_path / "x.csv.zst", text)
    (tmp_path / "x.csv").write_bytes(text)
    for name in ("x.csv", path.name):
        assert read_columns(tmp_path / name, ["y", "p"])["p"].tolist() == [0.5, 0.25]
        assert read_categories(tmp_path / name, ["a long\nname"])["a long\nname"].tolist() == ["x", "y"]


def test_other_encodings_of_zstandard_files_are_told_with_their_line(tmp_path):
    early = zstandard(tmp_path / "early.csv.zst", "y,p,n\n1,0.5,ä\n".encode("latin-1"))
    late = b"y,p,n\n" + b"1,0.5,abcdefgh\n" * 400_000 + "1,0.5,ä\n".encode("latin-1")
    for path, line in ((early, "2"), (zstandard(tmp_path / "late.csv.zst", late), "")):
        with pytest.raises(UnreadableFileError, match=f"must be UTF-8; got other bytes.*{line}.*iconv"):
            read_categories(path, ["n"])
