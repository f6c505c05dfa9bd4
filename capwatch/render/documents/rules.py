"""The rules for Prometheus: thresholds, recording rules and alerts, as files or as a PrometheusRule of the operator.

They are those of this version, from the installed package. --runbook has the runbook_url of every alert lead to a copy
of rules/README.md that your people can open.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from textwrap import indent

from capwatch import shipped
from capwatch.errors import UsageError
from capwatch.render.page import named, text

EXAMPLE = "capwatch render rules --runbook https://wiki.example.org/capwatch/runbook"


def describe(parser: argparse.ArgumentParser) -> None:
    """Its options."""
    parser.add_argument("--out", metavar="DIR", help="write the files there (print them)")
    parser.add_argument("--runbook", metavar="URL", help="address of your copy of the runbook, rules/README.md")
    parser.add_argument("--operator", action="store_true", help="one PrometheusRule for the operator of Kubernetes")
    parser.add_argument("--namespace", metavar="NAME", help="of the PrometheusRule")
    parser.add_argument("--label", metavar="NAME=VALUE", action="append", default=[], help="label by which it is found")


def render(arguments: argparse.Namespace, now: float) -> str:  # noqa: ARG001 - rules are of a version, not of a moment
    """The files, one after another, or the object; with --out the names of what was written."""
    files = shipped.rules(arguments.runbook)
    if arguments.operator:
        files = {"prometheusrule.yml": "\n".join(_object(files, arguments)) + "\n"}
    if arguments.out is not None:
        return shipped.write(files, arguments.out)
    if arguments.operator:
        return "".join(files.values()).rstrip("\n")
    return "\n".join(f"# {name}\n{content}" for name, content in files.items()).rstrip("\n")


def _object(files: dict[str, str], arguments: argparse.Namespace) -> Iterator[str]:
    yield "# The rules of capwatch for the Prometheus operator: `capwatch render rules --operator`."
    yield "apiVersion: monitoring.coreos.com/v1"
    yield "kind: PrometheusRule"
    yield "metadata:"
    yield "  name: capwatch"
    if arguments.namespace is not None:
        yield f"  namespace: {text(named(arguments.namespace))}"
    yield "  labels:"
    yield "    app.kubernetes.io/name: capwatch"
    for label in arguments.label:
        name, equals, value = label.partition("=")
        if not (name and equals):
            raise UsageError(f"--label: found {label!r}; write NAME=VALUE, such as release=kube-prometheus-stack")
        yield f"    {text(name)}: {text(value)}"
    yield "spec:"
    yield "  groups:"
    for name, content in files.items():
        yield f"    # {name}"
        yield indent(content.partition("\ngroups:\n")[2].rstrip("\n"), "  ")
