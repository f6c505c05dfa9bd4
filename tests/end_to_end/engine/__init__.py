"""A real inference engine on the CPU, outside the default tests."""
