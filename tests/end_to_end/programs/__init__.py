"""Real programs on loopback, and what the product makes of the logs that they write."""
