"""The arithmetic of capacity that everyone shares: plain numbers in, plain results out, no I/O and no clock.

From the work of a request to the replicas it needs: `work` (replica-seconds), `effects` (why its mean changed),
`little` (in flight), `queueing` and `knee` (waits), `slots` and `sizing` (how many replicas), `kv` (memory), `spike`,
`regions`, `chain`, `budget`, `quota`, `crossover` (money), `bursts`, `lengths`, `balance`, `simulate`; `profile` and
`loadtest` say what a log has in it. Units are
seconds, tokens, bytes and replica-seconds. F1, F2 … number the formulas as `docs/capacity.md` does.
"""
