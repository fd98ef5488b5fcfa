"""Structs of Thrift's compact protocol: written and read back, and what is none refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.scale import thrift_compact

values = st.deferred(lambda: st.one_of(scalars, lists, structs))
scalars = st.one_of(
    st.tuples(st.sampled_from([4, 5, 6]), st.integers(-(2**62), 2**62)),
    st.tuples(st.just(8), st.binary(max_size=20)),
    st.tuples(st.just(7), st.binary(min_size=8, max_size=8)),
    st.tuples(st.just(3), st.integers(0, 255)),
    st.sampled_from([(1, True), (2, False)]),
)
lists = st.one_of(
    st.lists(st.integers(-(2**40), 2**40), max_size=40).map(lambda found: (9, (6, found))),
    st.lists(st.deferred(lambda: fields), max_size=4).map(lambda found: (9, (12, found))),
)
fields = st.dictionaries(st.integers(-300, 30_000), values, max_size=4)
structs = fields.map(lambda found: (12, found))


@settings(max_examples=60)
@given(fields)
def test_structs_come_back(struct):
    written = thrift_compact.write_struct(struct)
    assert thrift_compact.read_struct(written) == struct
    for end in range(len(written)):
        with pytest.raises(thrift_compact.NotThriftError):
            thrift_compact.read_struct(written[:end])


@pytest.mark.parametrize(
    "spoilt", [b"", b"\x1c" * 5_000, b"\x19\xfc\xff\xff\xff\xff\x0f\x00", b"\x15\x02\x00\x00"]
)
def test_what_is_no_struct_is_refused(spoilt):
    with pytest.raises(thrift_compact.NotThriftError):
        thrift_compact.read_struct(spoilt)
