"""The manifests in deploy/ are what their programs take, and as tight as they say."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from capwatch import formats
from capwatch.config import parse

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = DEPLOY / "systemd" / "capwatch.service"
MANIFEST = DEPLOY / "kubernetes" / "daemonset.yml"
EXPOSURE = 2.0
"""Of 10, by systemd's own scale; what runs without a sandbox has 9.6."""


def analysed(*words: str) -> str:
    """What systemd-analyze says of the unit, with its exit code 0."""
    program = shutil.which("systemd-analyze") or pytest.skip("systemd-analyze is not installed (Debian: systemd)")
    result = subprocess.run([program, *words, UNIT], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    return result.stdout


def documents() -> dict[str, Any]:
    """The objects of the manifest by their kind."""
    return {one["kind"]: one for one in yaml.safe_load_all(MANIFEST.read_text())}


def test_systemd_understands_every_line() -> None:
    """No unknown key, no program that is not there."""
    analysed("verify", "--man=no")


def test_the_service_is_hardly_exposed() -> None:
    """By systemd's own judgement of the sandbox."""
    found = re.search(r"Overall exposure level for capwatch.service: ([\d.]+)", analysed("security", "--offline=true"))
    assert found is not None
    assert float(found[1]) <= EXPOSURE


@pytest.mark.parametrize("kind", ["Namespace", "ConfigMap", "DaemonSet"])
def test_kubernetes_takes_every_object(kind: str) -> None:
    """By its own schema, strictly: no unknown field either."""
    kubernetes = pytest.importorskip("kubernetes_validate", reason="a package of the development environment")
    kubernetes.validate(documents()[kind], "1.31", strict=True)


def test_the_pod_can_do_nothing_but_read_and_keep_its_state() -> None:
    """Another user than root, a read-only root, no capability, and one folder to write to."""
    pod = documents()["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    writable = [one["mountPath"] for one in container["volumeMounts"] if not one.get("readOnly")]
    assert (pod["securityContext"]["runAsNonRoot"], pod["automountServiceAccountToken"]) == (True, False)
    assert container["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert writable == ["/var/lib/capwatch"]


def test_its_configuration_is_one() -> None:
    """What the ConfigMap holds is read without an error."""
    text = documents()["ConfigMap"]["data"]["capwatch.yml"]
    config = parse(text, "capwatch.yml", {"HOME": "/"}, formats=frozenset(formats.shelf()), is_root=False)
    assert [source.wrapper for source in config.sources] == ["cri"]
