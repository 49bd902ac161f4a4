"""Puts the recipes (`data/`, `job_specs/`) beside the code in a built wheel; everything else is in pyproject.toml.

A checkout, and so an editable install, reads them from the repository's top level. A wheel has no top level, so they
go to `hybrid/_recipes/data` and `hybrid/_recipes/job_specs` there.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithRecipes(build_py):
    """`build_py`, then a copy of the recipes."""

    def run(self) -> None:
        """Copy the packages, then the recipes; an editable install copies nothing."""
        super().run()
        if self.editable_mode:
            return
        for folder in ("data", "job_specs"):
            if Path(folder).is_dir():
                shutil.copytree(folder, Path(self.build_lib, "hybrid", "_recipes", folder), dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithRecipes})
