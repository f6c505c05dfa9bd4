"""What a command finds around it: its configuration in file and environment, its terminal."""
