"""YAML → typed, frozen configuration; every error is one line that names its place.

`tree` bounds the YAML, `environment` puts overrides in, `shape` tells what each key of `schema` may hold, `load` reads
it, `rules` holds the keys against each other; `check` and `jsonschema` speak about the result.
"""

from capwatch.config.check import Finding, effective, test_paths, warnings
from capwatch.config.jsonschema import json_schema
from capwatch.config.load import default_state_dir, load, parse
from capwatch.config.rules import engine_label, roles
from capwatch.config.schema import (
    DEFAULT_POOL,
    Budget,
    Class,
    Config,
    Dedupe,
    Drift,
    Engine,
    Field,
    Gpu,
    History,
    Limits,
    Match,
    Metrics,
    Pool,
    Price,
    Privacy,
    Quota,
    Role,
    Slo,
    Source,
)
from capwatch.config.units import Stage

__all__ = [
    "DEFAULT_POOL",
    "Budget",
    "Class",
    "Config",
    "Dedupe",
    "Drift",
    "Engine",
    "Field",
    "Finding",
    "Gpu",
    "History",
    "Limits",
    "Match",
    "Metrics",
    "Pool",
    "Price",
    "Privacy",
    "Quota",
    "Role",
    "Slo",
    "Source",
    "Stage",
    "default_state_dir",
    "effective",
    "engine_label",
    "json_schema",
    "load",
    "parse",
    "roles",
    "test_paths",
    "warnings",
]
