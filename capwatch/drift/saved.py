"""A model as plain values, to be kept with the state and read again after a restart."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, Final

import numpy as np

from capwatch.drift.channels import Channel
from capwatch.drift.layout import Layout
from capwatch.drift.model import Model, Watched
from capwatch.drift.reference import CELLS, Reference
from capwatch.drift.scale import Scale
from capwatch.drift.together import Calm

VERSION: Final = 2


def save(model: Model) -> dict[str, Any]:
    """Builtins and arrays of at most two dimensions; carries a schema version."""
    reference = model.reference
    told = {one.name: getattr(reference, one.name) for one in fields(reference) if one.name not in ("layout", "klass")}
    return {
        "version": VERSION,
        "layout": {one.name: getattr(reference.layout, one.name) for one in fields(reference.layout)},
        "reference": {**told, "klass": reference.klass.reshape(CELLS, -1)},
        "calm": asdict(model.calm),
        "watched": {
            way: {
                "channels": [list(asdict(channel).values()) for channel in one.channels],
                "scale": {part.name: getattr(one.scale, part.name) for part in fields(one.scale)},
            }
            for way, one in model.watched.items()
        },
    }


def load(saved: dict[str, Any]) -> Model:
    """The model that `save` was given.

    Raises:
        ValueError: it is of another version.
    """
    if saved["version"] != VERSION:
        raise ValueError(f"drift model of version {saved['version']}; this is version {VERSION}")
    places: dict[str, Any] = {
        name: tuple(tuple(one) if isinstance(one, list | tuple) else one for one in values)
        for name, values in saved["layout"].items()
    }
    layout = Layout(**places)
    arrays = {name: _array(part) for name, part in saved["reference"].items()}
    arrays["klass"] = arrays["klass"].reshape(CELLS, len(layout.owners), len(layout.classes) + 1)
    watched = {
        int(way): Watched(
            tuple(Channel(*channel) for channel in one["channels"]),
            Scale(**{name: _array(part) for name, part in one["scale"].items()}),
        )
        for way, one in saved["watched"].items()
    }
    calm = Calm(**{name: _array(part) for name, part in saved["calm"].items()})
    return Model(Reference(layout=layout, **arrays), watched, calm)


def _array(value: object) -> Any:  # arrays, dictionaries of them, or numbers
    if isinstance(value, dict):
        return {name: _array(part) for name, part in value.items()}
    return value if isinstance(value, float | int) else np.asarray(value)
