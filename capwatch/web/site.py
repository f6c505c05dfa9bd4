"""Which answer belongs to which request: the paths of contract section 8, what the page needs, and no others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from capwatch.exporters.protobuf import PROTOBUF
from capwatch.exporters.text import OPENMETRICS, PROMETHEUS
from capwatch.web import api, files, negotiate, page
from capwatch.web.answer import Answer, said
from capwatch.web.negotiate import Form
from capwatch.web.request import Asked
from capwatch.web.shown import Shown

RELOAD: Final = "/-/reload"
_TYPES: Final[Mapping[Form, str]] = {"text": PROMETHEUS, "openmetrics": OPENMETRICS, "protobuf": PROTOBUF}


@dataclass(frozen=True, slots=True)
class Site:
    """Everything that can be asked for. Holds nothing of its own, so many threads may ask at once."""

    shown: Shown
    telemetry_path: str = "/metrics"
    reload: Callable[[], bool] | None = None
    """Loads the configuration anew and says whether that went well; None: the path does not exist."""

    def is_scrape(self, asked: Asked) -> bool:
        """Whether the page of metrics is asked for, which costs more than all the rest."""
        return asked.path == self.telemetry_path

    def answer(self, asked: Asked) -> Answer:
        """The answer; to HEAD the same as to GET, the body to be left out."""
        if self.reload is not None and asked.path == RELOAD:
            return self._reloaded(self.reload) if asked.method == "POST" else _not_allowed("POST")
        if asked.method not in ("GET", "HEAD"):
            return _not_allowed("GET, HEAD")
        if asked.body:
            return said(400, "no request here has a body")
        if self.is_scrape(asked):
            return self._metrics(asked)
        answer = self._told(asked.path)
        if answer is None:
            return self._probe(asked.path)
        return answer.packed(compressed=negotiate.gzip(asked.headers.get("accept-encoding")))

    def _told(self, path: str) -> Answer | None:
        """What people and their browsers ask for."""
        match path:
            case "/":
                return page.answer(self.shown.status(), self.shown.now(), self.telemetry_path)
            case "/api/v1/status":
                return api.status(self.shown.status())
            case "/api/v1/drift":
                return api.document(self.shown.drifts())
            case "/api/v1/now":
                return api.document(self.shown.now())
            case "/api/v1/recent":
                return api.document(self.shown.recent())
            case "/api/v1/history":
                return api.document(self.shown.history())
        return files.answer(path)

    def _probe(self, path: str) -> Answer:
        match path:
            case "/-/healthy":
                return said(200, "capwatch is alive")
            case "/-/ready":
                if self.shown.ready():
                    return said(200, "capwatch is ready")
                return said(503, "capwatch is still reading what lay on disk at its start")
        return said(404, "nothing is here; see / for what there is")

    def _metrics(self, asked: Asked) -> Answer:
        form = negotiate.exposition(asked.headers.get("accept"))
        compressed = negotiate.gzip(asked.headers.get("accept-encoding"))
        headers = [("Vary", "Accept, Accept-Encoding")]
        if compressed:
            headers.append(("Content-Encoding", "gzip"))
        return Answer(200, self.shown.metrics(form, compressed=compressed), _TYPES[form], headers=tuple(headers))

    @staticmethod
    def _reloaded(reload: Callable[[], bool]) -> Answer:
        if reload():
            return said(200, "the configuration was loaded anew")
        return said(500, "the configuration was refused and the old one is in force; the log of capwatch says why")


def _not_allowed(methods: str) -> Answer:
    return said(405, f"possible here is {methods}", ("Allow", methods))
