"""Keep: what survives. The hot state in one transaction a commit, the history beside it, the lock on both."""
