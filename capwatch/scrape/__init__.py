"""Fetches engines' /metrics pages and keeps track of what each engine told, and of how long ago that was."""
