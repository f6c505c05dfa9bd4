"""The drift detectors at work: requests in, ticks and what the detectors say into the ledger, events out."""
