"""The demo: made-up traffic of the reference scenario, written as real logs, read by the real daemon.

`workload` who asks for what · `draw` requests as they come · `fleet` replicas that serve them · `simulation` both, in
time · `truth` what must be reported of them · `writers` their log lines · `columns` what those lines would become ·
`history` two weeks before · `scene` files and configuration · `clock` what time it is · `stage` the running show ·
`readings` what the daemon's page says · `narrator` what one is told of it.
"""
