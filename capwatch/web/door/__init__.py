"""The door: who may come in, by the web configuration file that all exporters of Prometheus share.

`document` what may stand in the file · `ciphers` its names for what OpenSSL calls otherwise · `tls` certificates ·
`passwords` bcrypt, and who has been recognised · `door` what is in force, taken anew when a file changes.

Reference: exporter-toolkit, docs/web-configuration.md (Prometheus authors).
"""

from capwatch.web.door.door import Door

__all__ = ["Door"]
