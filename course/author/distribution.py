"""`make dist`: the source distribution, and the wheel made from it, with nothing fetched.

The wheel is made in a folder of its own from what the source distribution holds: so neither has anything that the other
one lacks, and nothing that an earlier build left behind comes in. Both steps are the hooks of PEP 517.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

__all__ = ["DistributionError", "main", "make_distributions"]

_HOOK = "import sys, setuptools.build_meta as hooks; print(getattr(hooks, sys.argv[1])(sys.argv[2]))"


class DistributionError(Exception):
    """A distribution could not be made; the text is the end of what the build said."""


def make_distributions(checkout: Path, target: Path) -> tuple[Path, Path]:
    """Make both from this checkout, into the folder `target`; return the source distribution and the wheel.

    Raises:
        DistributionError: a step failed.
    """
    target.mkdir(parents=True, exist_ok=True)
    source = target / _built("build_sdist", checkout, target)
    with tempfile.TemporaryDirectory(prefix="sluice-dist-") as folder:
        with tarfile.open(source) as archive:
            # Python 3.11.2, which Debian 12 has, knows no filters.
            archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
            archive.extractall(folder)  # noqa: S202 - we have made the archive a moment ago
        (unpacked,) = Path(folder).iterdir()
        return source, target / _built("build_wheel", unpacked, target)


def _built(hook: str, project: Path, target: Path) -> str:
    """The name of the file that this hook has put into `target`."""
    command = [sys.executable, "-c", _HOOK, hook, str(target.resolve())]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    if done.returncode:
        end = "\n".join(done.stderr.splitlines()[-15:])
        raise DistributionError(f"{hook} failed in {project}:\n{end}")
    return done.stdout.splitlines()[-1]


def main(words: list[str] | None = None) -> int:
    """Make both and say how large they are; return the exit status."""
    parser = argparse.ArgumentParser("python -m course.author.distribution", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("dist"), metavar="DIR", help="put them there (%(default)s)")
    arguments = parser.parse_args(words)
    try:
        for file in make_distributions(Path(__file__).resolve().parents[2], arguments.out):
            print(f"{file}  {file.stat().st_size / 1e6:.1f} MB")
    except (DistributionError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
