"""Speed against public peers: a corpus with its truth, the peers' programs, and the scripts that compare."""
