"""The door of the real daemon, tried with the programs that people have: curl, openssl, promtool, Prometheus."""
