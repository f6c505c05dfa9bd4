"""What the room asks of the daemon, and nothing else of it."""

from __future__ import annotations

from typing import Protocol

from capwatch.web.negotiate import Form
from capwatch.web.now import History, Now, Recent
from capwatch.web.status import Drifts, Status


class Shown(Protocol):
    """The last durable snapshot. Called from many threads at once."""

    def metrics(self, form: Form, *, compressed: bool) -> bytes:
        """The whole page of metrics in an exposition format, as gzip where ``compressed``."""

    def status(self) -> Status:
        """See `Status`."""

    def drifts(self) -> Drifts:
        """See `Drifts`."""

    def now(self) -> Now:
        """See `Now`."""

    def recent(self) -> Recent:
        """See `Recent`."""

    def history(self) -> History:
        """See `History`."""

    def ready(self) -> bool:
        """Whether everything has been read that lay on disk at the start."""
