"""Coverage-guided fuzzing of whatever reads foreign bytes, by atheris; by hand, for as long as one likes."""
