"""The shelf of exposition formats: one per file. A module here with an ``EXPORTER`` is found by itself."""
