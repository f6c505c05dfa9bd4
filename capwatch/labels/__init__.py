"""Which tenants, routes and models have names of their own on a page, and how those names are made fit for it."""

from capwatch.labels.budget import Labelled, Labels
from capwatch.labels.series import own
from capwatch.labels.text import clean

__all__ = ["Labelled", "Labels", "clean", "own"]
