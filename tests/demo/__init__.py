"""The demo: its simulation against its own truth, and against what the pipeline makes of the logs it writes."""
