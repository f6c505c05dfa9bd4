"""The effective configuration, warnings and tests of paths."""

import os
from pathlib import Path

import pytest
import yaml

from capwatch.config import Config, Engine, Limits, Metrics, Pool, Source, check, load, parse

FORMATS = frozenset({"jsonl", "litellm", "vllm"})
ENGINES = frozenset({"vllm"})
EXAMPLE = Path(__file__).with_name("contract_example.yml")
MEASURED = (Pool("p"),)
GUESSED = (
    "pools: p: prefill_tokens_per_second and decode_tokens_per_second are assumed, so costs are guesses; set them to"
    " what one replica does"
)
COUNTED_TWICE = (
    "sources: a, b all count requests of pool p; a request in two of them counts twice unless one is role: times"
)
LOG = Source("a", ("/a",), "jsonl")


@pytest.mark.parametrize("text", ["", EXAMPLE.read_text()], ids=["defaults", "example"])
def test_effective_loads_again(text: str) -> None:
    """Loading what is printed gives an equal configuration."""
    config = parse(text, "f", {}, formats=FORMATS, is_root=True)
    assert parse(check.effective(config), "f", {}, formats=FORMATS, is_root=False) == config


def test_effective_order() -> None:
    """What is printed stands in the order of the schema, and a key without value and default is left out."""
    printed = yaml.safe_load(check.effective(Config()))
    assert [*printed] == [
        *("listen", "state_dir", "commit_interval", "sources", "engines", "gpu", "pools", "classes", "slo", "drift"),
        *("budgets", "quotas", "dedupe", "history", "metrics", "limits", "privacy"),
    ]


def test_effective_writes_units() -> None:
    """Durations and sizes are printed as people write them."""
    printed = yaml.safe_load(check.effective(Config()))
    assert (printed["commit_interval"], printed["dedupe"], printed["history"]) == (
        "500ms",
        {"window": "1h"},
        {"max_bytes": "2GiB"},
    )


def test_effective_masks() -> None:
    """User and password of a URL are not printed."""
    config = Config(engines=(Engine("http://user:secret@h:8000/metrics"),))
    assert yaml.safe_load(check.effective(config))["engines"][0]["url"] == "http://***@h:8000/metrics"


def test_no_warnings() -> None:
    """The contract's example deserves no warning."""
    config = load(str(EXAMPLE), {}, formats=FORMATS, is_root=True)
    assert check.warnings(config, ENGINES) == []


@pytest.mark.parametrize(
    ("config", "line"),
    [
        (Config(pools=MEASURED), "sources: none, and no engines; there is nothing to watch"),
        (
            Config(sources=(LOG,), pools=(Pool("p", assumed=True),)),
            GUESSED,
        ),
        (
            Config(sources=(LOG, Source("b", ("/b",), "jsonl", pool="p")), pools=MEASURED),
            COUNTED_TWICE,
        ),
        (
            Config(engines=(Engine("http://h/m", "p", interval=10, patience=5),), pools=MEASURED),
            "engines[0].patience: shorter than interval; every value is withdrawn before the next comes",
        ),
        (
            Config(sources=(LOG,), pools=MEASURED, limits=Limits(tenants=2, routes=2, tenant_routes=17)),
            "limits.tenant_routes: 17 is more than the 16 pairs that there can be",
        ),
        (
            Config(sources=(LOG,), pools=MEASURED, limits=Limits(tenant_routes=100)),
            "limits.tenant_routes: fewer than the 200 tenants; some have no series of their own",
        ),
        (
            Config(sources=(LOG,), pools=MEASURED, limits=Limits(series=1000)),
            "limits.series: 1000 is too few for 3000 pairs of tenant and route with 33 series each",
        ),
        (
            Config(sources=(LOG,), pools=MEASURED, metrics=Metrics(("tenant_route:*", "capwatch_request_total"))),
            "metrics.disable: no family capwatch_request_total; did you mean 'capwatch_requests_total'?",
        ),
    ],
)
def test_warning(config: Config, line: str) -> None:
    """Each thing that is probably not meant has its line, and only that."""
    assert check.warnings(config, ENGINES) == [line]


def test_shared_pools_are_told_once() -> None:
    """The same sources that meet in many pools are one warning."""
    config = Config(sources=(LOG, Source("b", ("/b",), "jsonl")), pools=(Pool("p"), Pool("q")))
    assert len(check.warnings(config, ENGINES)) == 1


@pytest.mark.parametrize(
    ("listen", "auth", "warned"),
    [
        ("127.0.0.1:1", False, False),
        ("127.8.8.8:1", False, False),
        ("localhost:1", False, False),
        ("[::1]:1", False, False),
        (":1", False, True),
        ("0.0.0.0:1", False, True),
        ("[::]:1", False, True),
        ("10.0.0.7:1", False, True),
        ("example.org:1", False, True),
        ("0.0.0.0:1", True, False),
    ],
)
def test_reach(listen: str, auth: bool, warned: bool) -> None:
    """An address that others reach needs a password, or gets a warning."""
    assert [line.split(":")[0] for line in check.of_reach(listen, auth=auth)] == ["listen"] * warned


def found(tmp_path: Path, *patterns: str, deploys: str | None = None) -> list[tuple[str, str, str]]:
    """What a test of these globs finds, without the folder's own name."""
    sources = tuple(Source(f"s{n}", (str(tmp_path / each),), "jsonl") for n, each in enumerate(patterns))
    config = Config(state_dir=str(tmp_path / "new/state"), sources=sources, deploys=deploys and str(tmp_path / deploys))
    return [(each.level, each.key, each.text.replace(f"{tmp_path}/", "")) for each in check.test_paths(config)]


STATE = ("ok", "state_dir", "new/state will be created")


def test_files(tmp_path: Path) -> None:
    """A glob tells how many files it finds; folders do not count."""
    for name in ("a.log", "b.log", "sub/c.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "d.log").mkdir()
    assert found(tmp_path, "*.log", "**/*.log", "none/*.log") == [
        ("ok", "sources[0].path", "*.log: 2 files"),
        ("ok", "sources[1].path", "**/*.log: 3 files"),
        ("warning", "sources[2].path", "none/*.log: no file yet"),
        STATE,
    ]


def test_nothing_is_rotated_yet(tmp_path: Path) -> None:
    """Rotated names of a file that is there may be missing; those of a file that is not are as suspect as itself."""
    (tmp_path / "a.log").touch()
    paths = tuple(str(tmp_path / name) for name in ("a.log", "a.log.*", "a.log-*", "b.log.*"))
    told = check.test_paths(Config(state_dir=str(tmp_path), sources=(Source("s", paths, "jsonl"),)))
    assert [(each.level, each.text.rpartition(": ")[2]) for each in told[:4]] == [
        ("ok", "1 file"),
        ("ok", "no rotated file yet"),
        ("ok", "no rotated file yet"),
        ("warning", "no file yet"),
    ]


def test_deploys(tmp_path: Path) -> None:
    """The file of deploys is a name, not a glob."""
    (tmp_path / "d[1].jsonl").touch()
    assert found(tmp_path, deploys="d[1].jsonl")[0] == ("ok", "deploys", "d[1].jsonl: 1 file")


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that cannot be opened are named."""
    (tmp_path / "a.log").touch()
    (tmp_path / "b.log").touch()
    really = os.open

    def refusing(path: str, flags: int) -> int:
        if path.endswith("b.log"):
            raise PermissionError
        return really(path, flags)

    monkeypatch.setattr(os, "open", refusing)
    text = "*.log: 2 files, not readable: b.log"
    assert found(tmp_path, "*.log")[0] == ("error", "sources[0].path", text)


def test_hidden_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that may not be looked into is an error, not "no file yet"."""
    monkeypatch.setattr(os, "access", lambda path, mode: mode & os.R_OK == 0)
    assert found(tmp_path, "a/*.log") == [
        ("error", "sources[0].path", f"a/*.log: no permission to look into {tmp_path}"),
        STATE,
    ]


def test_state_not_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that cannot be written is an error."""
    monkeypatch.setattr(os, "access", lambda path, mode: mode & os.W_OK == 0)
    assert found(tmp_path) == [("error", "state_dir", f"no permission to write into {tmp_path}")]


def test_state_is_there(tmp_path: Path) -> None:
    """A state directory that exists and can be written is fine."""
    assert [each.text for each in check.test_paths(Config(state_dir=str(tmp_path)))] == [str(tmp_path)]


def test_state_is_a_file(tmp_path: Path) -> None:
    """A file where the state should lie is an error."""
    (tmp_path / "state").touch()
    finding = check.test_paths(Config(state_dir=str(tmp_path / "state")))[0]
    assert (finding.level, finding.text) == ("error", f"{tmp_path}/state is no directory")
