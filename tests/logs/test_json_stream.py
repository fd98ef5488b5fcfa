"""The reader of long JSON documents agrees with the standard library, and refuses what that refuses."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.errors import UnreadableFileError
from calibrant.logs import json_stream
from calibrant.logs.json_stream import array_items, object_items

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
