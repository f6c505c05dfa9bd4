"""Init: a commented starter configuration from the log files that are there.

`look` what a file is and tells · `write` the configuration that follows from it.
"""
