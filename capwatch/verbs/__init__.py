"""The shelf of commands: one verb per file, with `EXAMPLE`, `describe(parser)` and `run(arguments) -> exit code`."""
