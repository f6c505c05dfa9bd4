"""What every log dialect shares: verdicts on lines, tolerant values, JSON paths, and the rules that settle a record.

A format on the shelf says only what is its own; everything that the contract asks of all of them lives here.
"""

from capwatch.dialect.decode import PIECE, Decoded, Decoder
from capwatch.dialect.settle import settle
from capwatch.dialect.verdict import (
    DROP_REASONS,
    Aside,
    Drop,
    Field,
    Format,
    Going,
    Held,
    Holding,
    Options,
    Reader,
    Skip,
    Stateless,
    Unwrapped,
    Verdict,
    Wrapper,
)

__all__ = [
    "DROP_REASONS",
    "PIECE",
    "Aside",
    "Decoded",
    "Decoder",
    "Drop",
    "Field",
    "Format",
    "Going",
    "Held",
    "Holding",
    "Options",
    "Reader",
    "Skip",
    "Stateless",
    "Unwrapped",
    "Verdict",
    "Wrapper",
    "settle",
]
