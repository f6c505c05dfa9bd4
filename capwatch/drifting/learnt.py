"""A model that was learnt elsewhere: its names are texts, since the ids of names that fall silent are given up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from capwatch.drift.layout import Layout
from capwatch.drift.model import Model, Settings
from capwatch.drift.saved import load

ABSENT: Final = -1
"""Id of a name that nobody has here now."""
Find = Callable[[str, str], int | None]
"""(dimension, text) → its id, if it has one."""


class Learnt:
    """What a model was learnt as, and the model by the ids that names have now."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        """Take over what was learnt.

        Args:
            told: `model` as saved, `texts` of its codes by dimension, the `settings` it was fitted with, and `until`,
                the tick up to which history was asked for.

        Raises:
            ValueError: it is of another version.
        """
        self.told = told
        self.until: int = told["until"]
        self.settings = Settings(**told["settings"])
        self._texts: Mapping[str, Sequence[str]] = told["texts"]
        self._model = load(told["model"])
        self._ids: dict[str, list[int]] = {}

    def model(self, find: Find) -> Model | None:
        """The model by present ids; None where they are the same as at the last call."""
        ids = {}
        for dimension, texts in self._texts.items():
            found = [find(dimension, text) for text in texts]
            ids[dimension] = [ABSENT if one is None else one for one in found]
        if ids == self._ids:
            return None
        self._ids = ids
        reference = self._model.reference
        return replace(self._model, reference=replace(reference, layout=_with(reference.layout, ids)))


def _with(layout: Layout, ids: Mapping[str, Sequence[int]]) -> Layout:
    """The same places by other ids. Names that are absent keep their place, and nobody is in it."""

    def named(codes: Sequence[int], dimension: str) -> tuple[int, ...]:
        return tuple(ids[dimension][code] for code in codes)

    def known(codes: Sequence[int], dimension: str) -> tuple[int, ...]:
        return tuple(one for one in named(codes, dimension) if one != ABSENT)

    return replace(
        layout,
        tenants=named(layout.tenants, "tenant"),
        classes=named(layout.classes, "class"),
        routes=named(layout.routes, "route"),
        known=known(layout.known, "tenant"),
        known_routes=known(layout.known_routes, "route"),
    )
