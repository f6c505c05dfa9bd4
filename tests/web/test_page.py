"""The page for people and the document for programs: complete, escaped, and without anything from outside."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from capwatch.web import Commit, Status, api, page
from capwatch.web.now import Finding, History, Recent

from .talk import NOW, SOURCE, STATUS

VOID = {"meta", "br", "link", "input"}
HOSTILE = """"><script>alert(1)</script><img src=x onerror='a()'>&amp;"""


class Read(HTMLParser):
    """What a browser would see: every tag closed in its turn, with its attributes and texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.scripts if self._open[-1:] == ["script"] else self.texts).append(data)

    def of(self, name: str) -> list[str | None]:
        """The values of an attribute."""
        return [value for one, value in self.attributes if one == name]


def read(status: Status = STATUS) -> Read:
    """The page of a status."""
    return Read(page.html(status, NOW, "/metrics"))


def told(status: Status = STATUS) -> str:
    """Everything that the page says, in one line."""
    return " ".join(" ".join(read(status).texts).split())


def test_the_page_links_to_what_there_is() -> None:
    """The page leads to the metrics, the status, and the two probes."""
    assert [link for link in read().of("href") if str(link)[1:5] in {"metr", "api/", "-/he", "-/re"}] == [
        *("/metrics", "/api/v1/status", "/api/v1/drift", "/api/v1/now", "/-/healthy", "/-/ready"),
    ]


def test_the_page_says_how_a_source_fares() -> None:
    """A source's row has its lines by fate, lag, loss and last event."""
    start = told().index("gateway litellm, count")
    row = "gateway litellm, count yes, files: 2 12,345 12,000 300 malformed 45 1.5 KiB truncated 7 2025-11-30 10:53:20"
    assert told()[start : start + len(row)] == row


def test_the_page_says_how_old_it_is() -> None:
    """The time of the last commit stands there, and how long ago it was."""
    assert "committed 2025-11-30 10:53:29 UTC (500 ms ago); it took 12 ms" in told()


def test_assumed_rates_are_marked() -> None:
    """A pool whose rates nobody configured says so."""
    assert "chat rates assumed" in told()


def test_trouble_is_said() -> None:
    """Catching up, failed commits, a source that is down, and problems are all in the text."""
    broken = replace(SOURCE, up=False, problems=["/var/log/a: permission denied"])
    text = told(replace(STATUS, ready=False, commit=Commit(errors=3), sources=[broken]))
    for sign in ("Still reading", "3 commits have failed", "/var/log/a: permission denied", "committed unknown"):
        assert sign in text


def test_names_cannot_become_markup() -> None:
    """A hostile name is shown as it is, and adds no tag and no attribute."""
    hostile = replace(SOURCE, name=HOSTILE, problems=[HOSTILE])
    found = read(replace(STATUS, sources=[hostile]))
    plain = read(replace(STATUS, sources=[replace(SOURCE, problems=["fine"])]))
    assert (found.tags, found.attributes) == (plain.tags, plain.attributes)
    assert found.texts.count(HOSTILE) == 2


@given(st.text(), st.floats(), st.integers(0, 2**63 - 1))
def test_any_status_makes_a_page_and_a_document(name: str, at: float, count: int) -> None:
    """Whatever names, times and numbers there are, both can be written."""
    source = replace(SOURCE, name=name, last_event=at, lag_bytes=count)
    status = replace(STATUS, sources=[source], started_at=at, clock=at)
    assert read(status).tags[0] == "html"
    assert json.loads(api.status(status).body)["sources"][0]["name"] == name


def test_the_page_loads_only_its_own_files() -> None:
    """Nothing is inline and nothing comes from elsewhere, and the policy allows just that."""
    found = read()
    assert set(found.tags) & {"style", "img", "iframe", "object", "form"} == set()
    assert [value for name in ("src", "href", "action") for value in found.of(name) if str(value)[0] not in "/#"] == []
    assert [name for name, _ in found.attributes if name == "style" or name.startswith("on")] == []
    assert "".join(found.scripts).strip() == ""
    rules = dict(rule.split(" ", 1) for rule in page.answer(STATUS, NOW, "/metrics").policy.split("; "))
    assert (rules["default-src"], rules["script-src"], rules["style-src"]) == ("'none'", "'self'", "'self'")


def test_the_page_says_what_is_the_matter_without_scripts() -> None:
    """Sentence, first step and other findings are in the document itself, and hostile ones add no markup."""
    drift = Finding(kind="drift", severity="bad", text=f"Cost up: {HOSTILE}", pool="chat", todo=(f"Cut {HOSTILE}",))
    other = Finding(kind="kv", severity="warn", text="KV memory is short.")
    found = Read(page.html(STATUS, replace(NOW, findings=[drift, other]), "/metrics"))
    assert [text for text in found.texts if text.strip() in {drift.text, drift.todo[0], other.text}] == [
        drift.text,
        drift.todo[0],
        other.text,
    ]
    assert set(found.tags) & {"img"} == set()


def test_a_file_name_may_be_any_bytes() -> None:
    """A problem that quotes a name which is no Unicode breaks neither the page nor the document."""
    status = replace(STATUS, sources=[replace(SOURCE, problems=["a\udcffb"])])
    assert json.loads(api.status(status).body)["sources"][0]["problems"] == ["a?b"]
    assert b"a?b" in page.answer(status, NOW, "/metrics").body


def test_the_document_holds_the_status() -> None:
    """The JSON document is the status, and can be read back without loss."""
    assert json.loads(api.status(STATUS).body)["sources"][0]["lines"]["dropped"] == {"malformed": 45, "too_long": 0}
    assert api.status(msgspec.json.decode(api.status(STATUS).body, type=Status)) == api.status(STATUS)


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ((), "version at started_at ready clock commit sources pools"),
        (("commit",), "timestamp duration_s errors"),
        (
            ("sources", 0),
            "name format role up files lag_bytes lines bytes last_event rotations truncations problems",
        ),
        (("sources", 0, "lines"), "read counted skipped dropped"),
        (("sources", 0, "bytes"), "read skipped lost"),
        (("pools", 0), "name assumed prefill_tokens_per_second decode_tokens_per_second replicas"),
    ],
)
def test_keys_are_stable(path: tuple[str | int, ...], keys: str) -> None:
    """The keys of the document are promised; each is named in the description of the document."""
    found = json.loads(api.status(STATUS).body)
    for step in path:
        found = found[step]
    assert list(found) == keys.split()
    assert [key for key in found if f"``{key}``" not in (api.__doc__ or "")] == []


@pytest.mark.parametrize(
    ("told", "keys"),
    [
        (NOW, "clock findings pools"),
        (NOW.findings[0], "kind severity text why pool todo"),
        (Recent(), "since until columns rows more"),
        (History(), "minutes slots minute_s slot_s pools findings notes problem"),
    ],
)
def test_keys_of_what_the_page_asks_for_are_stable(told: msgspec.Struct, keys: str) -> None:
    """Other programs may ask for it as well; each key is named in the description of the documents."""
    found = json.loads(api.document(told).body)
    assert list(found) == keys.split()
    assert [key for key in found if f"``{key}``" not in (api.__doc__ or "")] == []
