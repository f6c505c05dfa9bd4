"""The real programs against each other: capwatch's command, promtool, Prometheus."""
