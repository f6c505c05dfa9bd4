"""The web: what the daemon shows over HTTP, to scrapers, people and programs, whatever the other side does.

`negotiate` the format · `request` what was asked · `answer` what is said · `site` which answer belongs to which path ·
`page`, `files`, `api` what is in it · `findings` what matters first · `door` who may come in · `dialogue` HTTP as
bytes · `address`, `line`, `server` sockets, limits, patience · `shown`, `status`, `now` what the daemon lends.
"""

from capwatch.web.door import Door
from capwatch.web.server import Limits, Server
from capwatch.web.shown import Shown
from capwatch.web.status import Bytes, Commit, Lines, PoolStatus, SourceStatus, Status

__all__ = ["Bytes", "Commit", "Door", "Limits", "Lines", "PoolStatus", "Server", "Shown", "SourceStatus", "Status"]
