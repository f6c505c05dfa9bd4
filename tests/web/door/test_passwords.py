"""Users and passwords: who is recognised, what it costs, and what a stranger can learn from it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import bcrypt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capwatch.web.door import passwords
from capwatch.web.door.passwords import BusyError, Passwords, credentials

from .authority import basic, hashed

USERS = {"alice": hashed("sesame"), "bob": hashed("bob's")}
PATIENCE_S = 30.0


class Checked:
    """Stands for bcrypt: notes what is checked, and waits where it is told to."""

    def __init__(self) -> None:
        self.hashes: list[str] = []
        self.begun: Queue[None] = Queue()
        self.open = threading.Event()
        self.open.set()
        self._check = bcrypt.checkpw

    def checkpw(self, password: bytes, hash_: bytes) -> bool:
        """Whether they belong together."""
        self.hashes.append(hash_.decode())
        self.begun.put(None)
        assert self.open.wait(PATIENCE_S)
        return self._check(password, hash_)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Checked:
    """What bcrypt is asked for."""
    found = Checked()
    monkeypatch.setattr(bcrypt, "checkpw", found.checkpw)
    return found


@pytest.mark.parametrize(
    ("user", "password", "fits"),
    [
        ("alice", b"sesame", True),
        ("bob", b"bob's", True),
        ("alice", b"bob's", False),
        ("bob", b"sesame", False),
        ("alice", b"", False),
        ("alice", b"sesame\0", False),
        ("alice", b"sesame" * 10_000, False),
        ("Alice", b"sesame", False),
        ("nobody", b"sesame", False),
        ("nobody", b"bob's", False),
        ("", b"", False),
        ("\udcff", b"\xff", False),
    ],
)
def test_only_the_right_pair_fits(user: str, password: bytes, fits: bool) -> None:
    """The password of that very user, and no other; asking again changes nothing."""
    room = Passwords()
    assert [room.fit(USERS, user, password) for _ in range(3)] == [fits] * 3


def test_a_pair_is_remembered_as_a_pair(checked: Checked) -> None:
    """Who was recognised costs nothing again; the same text cut elsewhere, or of another user, is not recognised."""
    users = {"al": hashed("icesesame"), "alice": hashed("sesame")}
    room = Passwords()
    assert room.fit(users, "alice", b"sesame")
    assert room.fit(users, "alice", b"sesame")
    assert len(checked.hashes) == 1
    assert not room.fit(users, "al", b"icesesam")
    assert not room.fit(users, "al", b"sesame")
    assert len(checked.hashes) == 3


def test_a_new_hash_forgets_the_old_password() -> None:
    """A password that was changed in the file no longer fits, although it was remembered."""
    room = Passwords()
    assert room.fit({"alice": hashed("old")}, "alice", b"old")
    changed = {"alice": hashed("new")}
    assert (room.fit(changed, "alice", b"old"), room.fit(changed, "alice", b"new")) == (False, True)


def test_a_user_who_was_removed_is_gone() -> None:
    """Remembered or not."""
    room = Passwords()
    assert room.fit(USERS, "alice", b"sesame")
    assert not room.fit({"bob": USERS["bob"]}, "alice", b"sesame")


def test_wrong_passwords_push_nobody_out(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only right ones are remembered, so that no flood makes one be forgotten."""
    monkeypatch.setattr(passwords, "MOST_KNOWN", 1)
    room = Passwords()
    assert room.fit(USERS, "alice", b"sesame")
    for count in range(5):
        assert not room.fit(USERS, "alice", b"%d" % count)
    work = len(checked.hashes)
    assert room.fit(USERS, "alice", b"sesame")
    assert len(checked.hashes) == work


def test_what_is_remembered_is_bounded(checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of long passwords bcrypt sees the beginning, so that many fit; the longest unused is forgotten first."""
    monkeypatch.setattr(passwords, "MOST_KNOWN", 2)
    room, users = Passwords(), {"a": hashed("x" * 72)}
    one, two, three = (b"x" * 72 + end for end in (b"1", b"2", b"3"))
    for password in (one, two, one, three, one, two):
        assert room.fit(users, "a", password)
    assert len(checked.hashes) == 4  # one, two, three, and two again


def test_an_unknown_user_costs_what_a_known_one_does(checked: Checked) -> None:
    """A real hash is compared for it, always the same one, so that neither time nor cost tells users."""
    room = Passwords()
    for user in ("alice", *["nobody"] * 3, *(f"stranger {number}" for number in range(64))):
        assert not room.fit(USERS, user, b"wrong")
    assert len(checked.hashes) == 68
    assert len(set(checked.hashes[1:4])) == 1
    assert set(checked.hashes[4:]) == set(USERS.values())


def test_a_flood_delays_nobody_who_is_known(checked: Checked) -> None:
    """While passwords are checked a bounded number waits, one more is told so, and a known pair fits at once."""
    room = Passwords()
    assert room.fit(USERS, "alice", b"sesame")
    checked.begun.get(timeout=PATIENCE_S)
    checked.open.clear()
    with ThreadPoolExecutor(passwords.MOST_WAITING) as pool:
        flood = [pool.submit(room.fit, USERS, "alice", b"%d" % one) for one in range(passwords.MOST_WAITING)]
        checked.begun.get(timeout=PATIENCE_S)
        while room._places._value:  # until all of them wait
            pass
        with pytest.raises(BusyError):
            room.fit(USERS, "bob", b"bob's")
        assert room.fit(USERS, "alice", b"sesame")
        assert len(checked.hashes) == 2
        checked.open.set()
        assert [one.result(PATIENCE_S) for one in flood] == [False] * passwords.MOST_WAITING
    assert room.fit(USERS, "bob", b"bob's")


@given(st.text().filter(lambda text: ":" not in text), st.text())
def test_credentials_are_read_as_they_are_written(user: str, password: str) -> None:
    """Any text may be user and password; a colon may stand in the password only."""
    encodable = user.encode("utf-8", "replace").decode(), password.encode("utf-8", "replace").decode()
    assert credentials(basic(*encodable)) == (encodable[0], encodable[1].encode())


@pytest.mark.parametrize(
    "header",
    [None, "", "Basic", "Basic ", "Bearer YTpi", "Basic YTpi, Basic YTpi", "Basic YWI=", "Basic YTp", "Basic \xff"],
)
def test_anything_else_is_no_credentials(header: str | None) -> None:
    """Other schemes, two of them, no colon, no base64."""
    assert credentials(header) is None


@pytest.mark.parametrize("scheme", ["basic", "BASIC"])
def test_the_scheme_has_no_case(scheme: str) -> None:
    """As of RFC 7617."""
    assert credentials(f"{scheme} YTpi") == ("a", b"b")


@given(st.text(max_size=60))
def test_no_header_fails(header: str) -> None:
    """Whatever stands there, it is credentials or not."""
    assert credentials(f"Basic {header}") is None or ":" not in (credentials(f"Basic {header}") or ("", b""))[0]
