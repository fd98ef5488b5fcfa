"""The readers of JSON documents and zip archives agree with the standard library."""

from __future__ import annotations

import json
import tracemalloc
import warnings
import zipfile
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.errors import UnreadableFileError
from calibrant.logs import json_stream
from calibrant.logs.json_stream import array_items, object_items
from calibrant.logs.zip_archive import Archive

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=80, deadline=None)
@given(
    document=st.dictionaries(st.text(max_size=4), VALUES, max_size=4),
    samples=st.lists(VALUES, max_size=4),
    chunk=st.integers(1, 9),
    indent=st.sampled_from([None, 0, 2]),
    cut=st.integers(1, 30),
)
def test_as_the_standard_library(tmp_path_factory, document, samples, chunk, indent, cut):
    path = tmp_path_factory.mktemp("json") / "x.json"
    document = {key: value for key, value in document.items() if key != "samples"} | {"samples": samples}
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    path.write_text(text, encoding="utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "CHUNK", chunk)
        patch.setattr(json_stream, "NEAR_END", 8)
        items = list(object_items(path, "samples"))
        assert [value for key, value, _ in items if key == "samples"] == samples
        assert {key: value for key, value, _ in items if key != "samples"} | {"samples": samples} == document
        path.write_text(text[:-cut], encoding="utf-8", newline="")
        with pytest.raises(UnreadableFileError):
            list(object_items(path, "samples"))


def test_lines_are_counted(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('[\n {"a": 1},\n\n {"a": "two\\nlines"}\n, {"a": oops}]')
    items = array_items(path)
    assert [next(items)[1] for _ in range(2)] == [2, 4]
    with pytest.raises(UnreadableFileError, match=r"line 5 must be JSON; got Expecting value"):
        next(items)


NAMES = st.lists(st.sampled_from(["a", "b", "samples/é", "folder/c.json", "漢"]), max_size=6)


@settings(max_examples=60, deadline=None)
@given(
    names=NAMES,
    method=st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]),
    limit=st.sampled_from([10, zipfile.ZIP64_LIMIT]),  # above it zipfile writes the large form
    comment=st.binary(max_size=20),
    before=st.sampled_from([b"", b"something else"]),
)
def test_archives_as_zipfile_reads_them(tmp_path_factory, names, method, limit, comment, before):
    path = tmp_path_factory.mktemp("zip") / "x.eval"
    path.write_bytes(before)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that are written twice
        patch.setattr(zipfile, "ZIP64_LIMIT", limit)
        patch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", min(2, limit))
        with zipfile.ZipFile(path, "a", method) as archive:
            archive.comment = comment.replace(b"PK", b"")
            for k, name in enumerate(names):
                archive.writestr(name, json.dumps([name, k] * 9))
    ours = Archive(path)
    read = [(member.name, ours.load(member)) for member in ours.members()]
    with zipfile.ZipFile(path) as theirs:
        assert read == [(name, json.loads(theirs.read(name))) for name in dict.fromkeys(theirs.namelist())]


def test_damaged_archives_are_refused_or_read_alike(tmp_path):
    path = tmp_path / "x.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", json.dumps(["word"] * 9))
        archive.writestr("b", json.dumps({"key": 1}))
    whole = path.read_bytes()
    refused = 0
    for at, flip in product(range(len(whole)), (0x01, 0xFF)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
        try:
            archive = Archive(path)
            read = [archive.load(member) for member in archive.members()]
        except UnreadableFileError:
            refused += 1
            continue
        assert read == [["word"] * 9, {"key": 1}]
    assert refused > len(whole)
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(UnreadableFileError, match="must be a whole zip archive"):
            Archive(path)


def test_overlapping_members_are_refused(tmp_path):
    path = tmp_path / "x.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "1")
        archive.writestr("b", "2")
        first, second = archive.infolist()
        second.header_offset, second.filename, second.orig_filename = first.header_offset, "a", "a"
        first.compress_size = first.file_size = 40
    archive = Archive(path)
    with pytest.raises(UnreadableFileError, match="overlap"):
        archive.load(next(archive.members()))


def test_a_long_directory_is_not_held_in_memory(tmp_path):
    path = tmp_path / "x.eval"
    with zipfile.ZipFile(path, "w") as archive:
        for k in range(3_000):
            archive.writestr(f"samples/{k}_epoch_1.json", "1")

    def peak(work):
        tracemalloc.start()
        work()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert (
        peak(lambda: sum(1 for _ in Archive(path).members()))
        < 1_000_000
        < peak(lambda: zipfile.ZipFile(path))
    )
