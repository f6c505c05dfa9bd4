"""What a format understands of each line: the core of `capwatch explain`, for machines (JSON) and for people (text).

Lines go through the same `Decoder` as in the daemon. What comes out are record fields, the operator's own paths and
names of keys, never the value of a key that the format does not know.
"""

from capwatch.explain.fit import Fit, best_fit, find_wrapper
from capwatch.explain.judge import Judged, explain
from capwatch.explain.page import PAGE, explain_page
from capwatch.explain.show import as_json, as_text

__all__ = [
    "PAGE",
    "Fit",
    "Judged",
    "as_json",
    "as_text",
    "best_fit",
    "explain",
    "explain_page",
    "find_wrapper",
]
