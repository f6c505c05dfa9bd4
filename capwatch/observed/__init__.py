"""What a command is told by its SOURCE: single requests of raw logs, the rollups of a state, or a query API.

A command says what it can work from; what it cannot is refused in one line that says what it needs.
"""

from capwatch.observed import source, window
from capwatch.observed.requests import Requests, requests
from capwatch.observed.source import Given, given

__all__ = ["Given", "Requests", "given", "requests", "source", "window"]
