"""What the README shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()


def block(language: str) -> str:
    """The one code block of a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)
    return str(found)


def test_the_example_costs_what_the_readme_says(tmp_path: Path) -> None:
    """The README's configuration and log, replayed by its command, give the cost and the goodput it works out."""
    (tmp_path / "capwatch.yml").write_text(block("yaml"))
    (tmp_path / "access.jsonl").write_text(block("json"))
    (shown,) = re.findall(r"^\.venv/bin/(capwatch replay .*)$", README, flags=re.MULTILINE)
    program, *arguments = shown.split()
    command = [Path(sys.executable).with_name(program), *arguments]
    result = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    acme = {
        (sample.name, sample.labels.get("phase")): sample.value
        for family in text_string_to_metric_families(result.stdout)
        for sample in family.samples
        if sample.labels.get("tenant") == "acme"
    }
    assert "0.5 + 0.9375 = 1.4375 replica-seconds" in README
    assert acme["capwatch_cost_replica_seconds_total", "prefill"] == 0.5
    assert acme["capwatch_cost_replica_seconds_total", "decode"] == 0.9375
    assert acme["capwatch_goodput_requests_total", None] == 1
