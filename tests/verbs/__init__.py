"""Verbs as a user meets them."""
