"""What survives, and how it does."""
