"""The commit that is being evaluated, for the run record."""

import os
import shutil
import subprocess

CI_VARIABLES = ("GITHUB_SHA", "CI_COMMIT_SHA")


def current_commit() -> str | None:
    """Return the commit of the working folder, or of the CI job; None outside of both."""
    git = shutil.which("git")
    if git:
        found = subprocess.run(
            [git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=False
        )
        if found.returncode == 0:
            return found.stdout.strip()
    return next((os.environ[name] for name in CI_VARIABLES if os.environ.get(name)), None)
