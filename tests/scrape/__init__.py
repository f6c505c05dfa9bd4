"""Scraping engines' endpoints."""
