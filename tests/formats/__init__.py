"""Golden pairs of logs and what is understood of them, and the rules by which both are compared."""
