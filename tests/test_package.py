"""What is published: a wheel and an sdist that hold the package and its types, no tests, and that install."""

import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import capwatch
from capwatch import shipped
from capwatch.shipped import KINDS

ROOT = Path(__file__).resolve().parents[1]


def run(*command: str | Path, cwd: Path) -> str:
    """The standard output of a command that must succeed; `cwd` is never the checkout, whose package would win."""
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of a copy of the tree, and the wheel made of that sdist, built without a network."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "capwatch", tree / "capwatch", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", tree / "tests", ignore=shutil.ignore_patterns("__pycache__", "output"))
    for name in ("rules", "dashboards", "deploy/package"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, tree, cwd=out)
    return out


def wheel(dist: Path) -> Path:
    """The one wheel in the folder."""
    (found,) = dist.glob("*.whl")
    return found


def test_the_wheel_holds_the_package_and_nothing_else(dist: Path) -> None:
    """The wheel is capwatch/ file by file, with py.typed, rules and dashboards in it, and its own metadata."""
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "capwatch").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    shipped = {
        f"capwatch/shipped/{path.relative_to(ROOT)}"
        for folder, pattern in KINDS.items()
        for path in (ROOT / folder).glob(pattern)
    }
    with zipfile.ZipFile(wheel(dist)) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert "capwatch/py.typed" in sources
    assert len(shipped) == 9
    assert packed == sources | shipped


def test_the_sdist_holds_the_package_its_licence_and_the_rules(dist: Path) -> None:
    """The sdist has the sources, py.typed, the licence, rules and dashboards, and no tests of the package."""
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"LICENSE", "README.md", "capwatch/__init__.py", "capwatch/py.typed"} <= names
    assert {"rules/alerts.yml", "dashboards/on-call.json"} <= names
    assert [name for name in names if name.split("/")[0] == "tests"] == []


def test_the_wheel_installs_and_runs(dist: Path, tmp_path: Path) -> None:
    """In a fresh environment with only the dependencies, the command tells its version and finds what is shipped."""
    venv.create(tmp_path, with_pip=False)
    python = tmp_path / "bin" / "python"
    quiet = ["--quiet", "--no-deps", "--no-index"]
    run(sys.executable, "-m", "pip", "--python", python, "install", *quiet, wheel(dist), cwd=tmp_path)
    (site,) = tmp_path.glob("lib/python3.*/site-packages")
    # Lends the dependencies. The editable capwatch among them hangs on a .pth file of its own, which is not followed.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    found = run(python, "-c", "import capwatch; print(capwatch.__file__)", cwd=tmp_path)
    assert Path(found.strip()).is_relative_to(tmp_path)
    program = "from capwatch import shipped; print(len(list(shipped.expressions())), shipped.folder('rules'))"
    expressions, folder = run(python, "-c", program, cwd=tmp_path).split()
    assert int(expressions) == len(list(shipped.expressions()))
    assert Path(folder).is_relative_to(tmp_path)
    assert capwatch.__version__ in run(tmp_path / "bin" / "capwatch", "--version", cwd=tmp_path)


def test_the_wheel_holds_the_library_of_the_page(dist: Path) -> None:
    """Plots need no network: what draws them is in the package, with its licence."""
    with zipfile.ZipFile(wheel(dist)) as archive:
        names = {name.rpartition("/")[2] for name in archive.namelist() if name.startswith("capwatch/web/assets/")}
    assert {"uPlot.iife.min.js", "uPlot.min.css", "uPlot.LICENSE", "page.html", "main.js"} <= names
