"""Bring the packages that only `make bench` needs into `.venv`, once for each version of their list.

They are pinned with hashes, and only wheels are taken. What has none for this Python is left out, with one line that
says so; the rows that need it then do too, and nothing fails.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

__all__ = ["install"]

REQUIREMENTS = Path(__file__).parent / "requirements.txt"


def install(requirements: Path, python: Path, stamp: Path) -> bool:
    """Install what is listed with the pip of `python` unless `stamp` says it is there; return whether it is."""
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="ascii") == wanted:
        return True
    print("Installing the packages that the benchmarks compare with", flush=True)
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"]
    only_pinned = ["--require-hashes", "--only-binary", ":all:", "--requirement", str(requirements)]
    done = subprocess.run(
        [str(python), "-I", "-m", "pip", "install", *options, *only_pinned],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        said = next((line for line in done.stderr.splitlines() if line.startswith("ERROR")), "no reason given")
        print(f"They could not be installed, so their rows will not be measured: {said}", file=sys.stderr)
        return False
    stamp.write_text(wanted, encoding="ascii")
    return True


if __name__ == "__main__":
    try:
        install(REQUIREMENTS, Path(sys.executable), Path(sys.prefix) / "bench-ready")
    except KeyboardInterrupt:
        sys.exit(130)
