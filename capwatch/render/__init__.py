"""Manifests and documents for other programs, from live numbers: each number says where it comes from.

`observed` reads a source into the numbers of one pool, `page` writes commented YAML, and `documents` is the shelf of
what can be rendered. What a source does not tell is marked, and never made up.
"""
