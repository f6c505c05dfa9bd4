"""Formats and encodings by quality values; headers that real servers send get what they like best."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.web.negotiate import exposition, gzip

PROTO = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
OPEN = "application/openmetrics-text"

REAL = [
    pytest.param(
        f"{OPEN};version=1.0.0,{OPEN};version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
        "openmetrics",
        id="Prometheus 2.42",
    ),
    pytest.param(
        f"{PROTO},{OPEN};version=1.0.0;q=0.8,{OPEN};version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
        "protobuf",
        id="Prometheus 2.42 and 2.53 with native histograms",
    ),
    pytest.param(
        f"{OPEN};version=1.0.0;escaping=allow-utf-8;q=0.6,{OPEN};version=0.0.1;q=0.5,"
        "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        "openmetrics",
        id="Prometheus 3.5",
    ),
    pytest.param(
        f"{PROTO};q=0.7,{OPEN};version=1.0.0;escaping=allow-utf-8;q=0.6,{OPEN};version=0.0.1;q=0.5,"
        "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        "protobuf",
        id="Prometheus 3.5 with native histograms",
    ),
    pytest.param(
        "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3", "text", id="text only"
    ),
    pytest.param("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text", id="a browser"),
    pytest.param("*/*", "text", id="curl"),
    pytest.param(None, "text", id="no header"),
]
TRICKY = [
    pytest.param(f"{OPEN};q=0.1,text/plain;q=0.9", "text", id="by quality, not by presence"),
    pytest.param(f"{OPEN};q=0,*/*;q=0.1", "text", id="refused by name, although everything is taken"),
    pytest.param("text/plain;q=0,*/*", "openmetrics", id="the next best of everything"),
    pytest.param(f"{OPEN};version=0.0.1,text/plain;q=0.5", "text", id="a version that is not written"),
    pytest.param(OPEN.upper(), "openmetrics", id="names in capitals"),
    pytest.param(f'{OPEN} ; version="1.0.0" ; charset=utf-8', "openmetrics", id="blanks and quotes"),
    pytest.param("application/*;q=0.9,text/*;q=0.2", "openmetrics", id="a range of types"),
    pytest.param(
        "application/vnd.google.protobuf;proto=some.Other;encoding=delimited,text/plain;q=0.1", "text", id="a stranger"
    ),
    pytest.param(f"{PROTO.replace('delimited', 'text')},text/plain;q=0.1", "text", id="another encoding"),
    pytest.param(f"text/plain;q=0.5,{OPEN};q=nonsense", "text", id="a quality that cannot be read"),
    pytest.param("image/png", "text", id="nothing that there is"),
    pytest.param("", "text", id="an empty header"),
]


@pytest.mark.parametrize(("accept", "form"), [*REAL, *TRICKY])
def test_the_format_liked_best_is_given(accept: str | None, form: str) -> None:
    """The highest quality wins, counted for the range that names a format most closely."""
    assert exposition(accept) == form


@pytest.mark.parametrize(
    ("header", "compressed"),
    [
        (None, False),
        ("gzip", True),
        ("gzip, deflate, br", True),
        ("x-gzip", True),
        ("GZIP;Q=0.001", True),
        ("gzip;q=0", False),
        ("gzip;q=0.000, *", False),
        ("identity, gzip;q=0.5", False),
        ("identity;q=0.5, gzip", True),
        ("*", True),
        ("*;q=0", False),
        ("deflate", False),
        ("not-gzip, gzipped", False),
        ("gzip;q=2", False),
    ],
)
def test_gzip_is_given_where_it_is_taken(header: str | None, compressed: bool) -> None:
    """Gzip needs a quality above 0 that is not below that of plain bytes."""
    assert gzip(header) is compressed


@given(st.text(st.sampled_from('texplain/*,;q=01. "'), max_size=60) | st.text())
def test_any_header_gets_a_form(header: str) -> None:
    """Whatever the headers say, there is an answer."""
    assert (exposition(header) in ("text", "openmetrics", "protobuf"), gzip(header) in (True, False)) == (True, True)
