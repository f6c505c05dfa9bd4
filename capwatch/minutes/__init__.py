"""The last hours minute by minute: what the watchers of `capwatch.watchers` look at, and what they have found."""
