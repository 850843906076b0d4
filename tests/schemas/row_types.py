"""Row types for the tests of this folder, at random and by hand."""

from __future__ import annotations

from hypothesis import strategies as st

from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type

STRING, INT, LONG, FLOAT, DOUBLE = (Primitive(k) for k in (Kind.STRING, Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE))


def struct(*fields: Field, **named: Type) -> Struct:
    """A struct of fields, and of required fields by name and type."""
    return Struct((*fields, *(Field(name, of, required=True) for name, of in named.items())))


SOURCES = st.sampled_from(
    ["id", "Id", "ID", "a", "A b", "a_b", "a.b", "größe", "😀", "_kafka_offset", "_decoded", "1st", "x" * 140]
)
SCALARS: st.SearchStrategy[Type] = st.one_of(
    st.sampled_from([Primitive(k) for k in Kind if k is not Kind.VARIANT]),
    st.builds(Decimal, st.integers(10, 38), st.sampled_from([0, 2])),
)


def _fields(types: st.SearchStrategy[Type]) -> st.SearchStrategy[Struct]:
    field = st.builds(
        lambda source, of, required, doc, aliases, as_json: Field(
            source, STRING if as_json else of, required, doc, source, tuple(a for a in aliases if a != source), as_json
        ),
        SOURCES,
        types,
        st.booleans(),
        st.sampled_from(["", "one", "two"]),
        st.lists(SOURCES, max_size=1),
        st.sampled_from([False, False, False, True]),
    )
    return st.lists(field, max_size=4, unique_by=lambda f: f.source).map(lambda fields: Struct(tuple(fields)))


TYPES: st.SearchStrategy[Type] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(ListOf, inner, st.booleans()), st.builds(MapOf, st.just(STRING), inner, st.booleans()), _fields(inner)
    ),
    max_leaves=6,
)
ROWS = _fields(TYPES)
VERSIONS = st.lists(ROWS, max_size=4).map(lambda rows: list(enumerate(rows)))
