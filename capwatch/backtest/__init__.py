"""The drift detector over a past: which alarms it would have raised, and how soon it sees drifts put in by hand.

`table` reads a CSV as columns, `trace` makes requests of them, `past` runs the detector, `inject` changes what was.
"""
