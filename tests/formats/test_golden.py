"""Every golden pair under `tests/formats/`: what is understood of a log is what was read and agreed to."""

from __future__ import annotations

import pytest

from .compare import Case, cases, differences


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.log.parent.name}/{case.log.stem}")
def test_a_log_is_understood_as_agreed(case: Case, request: pytest.FixtureRequest) -> None:
    """Line by line, with every field; `pytest --update-golden` writes the expected files anew."""
    if request.config.getoption("--update-golden", default=False):
        case.update()
    assert differences(case.wanted(), case.run(), exact=True) == []
