"""Puts the rules and dashboards, which live beside the package, into the wheel; the rest is in pyproject.toml."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
SHIPPED = {"rules": "*.yml", "dashboards": "*.json"}


class Build(build_py):
    """The package, and in `capwatch/shipped` a copy of what is for other programs; a checkout is read as it is."""

    def run(self) -> None:
        """Copy the files; an editable install has them where they are."""
        super().run()
        if not self.editable_mode:
            for folder, pattern in SHIPPED.items():
                target = Path(self.build_lib) / "capwatch" / "shipped" / folder
                target.mkdir(parents=True, exist_ok=True)
                for path in sorted((HERE / folder).glob(pattern)):
                    self.copy_file(str(path), str(target / path.name))


setup(cmdclass={"build_py": Build})
