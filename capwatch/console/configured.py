"""The configuration as the process finds it: file, environment, user."""

from __future__ import annotations

import os

from capwatch import sourcing
from capwatch.config.load import load as load_file
from capwatch.config.schema import Config


def load(path: str) -> Config:
    """The configuration in a file, with the environment's overrides.

    Raises:
        capwatch.errors.ConfigError: it cannot be used.
    """
    return load_file(path, os.environ, formats=sourcing.names(), is_root=os.geteuid() == 0)
