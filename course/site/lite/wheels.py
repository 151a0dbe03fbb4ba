"""The wheels that `lite/` is made of: those named in `wheels.toml`, kept from one time to the next."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

from course.places import cache_folder
from course.site.tab.build import UnmadeError

__all__ = ["bring", "named"]

_LIST = Path(__file__).with_name("wheels.toml")
_SECONDS = 600


def named() -> dict[str, dict[str, str]]:
    """The digests of the wheels by their files' names, by what they are for."""
    found: dict[str, dict[str, str]] = tomllib.loads(_LIST.read_text(encoding="utf-8"))
    return found


def bring(wheels: Mapping[str, str]) -> list[Path]:
    """The wheels, in the order of their names; pip brings those that are not kept yet.

    Raises:
        UnmadeError: pip could not bring one, or it is another one than it was.
    """
    folder = cache_folder() / "lite"
    folder.mkdir(parents=True, exist_ok=True)
    missing = {name: digest for name, digest in wheels.items() if not _is(folder / name, digest)}
    if missing:
        _download(missing, folder)
    return [folder / name for name in sorted(wheels)]


def _is(file: Path, digest: str) -> bool:
    return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == digest


def _download(wheels: Mapping[str, str], folder: Path) -> None:
    lines = []
    for name, digest in wheels.items():
        package, version = name.split("-")[:2]
        lines.append(f"{package}=={version} --hash=sha256:{digest}\n")
    with tempfile.TemporaryDirectory(prefix="sluice-pip-") as made:
        listed = Path(made, "wheels.txt")
        listed.write_text("".join(lines), encoding="utf-8")
        # For any machine: they are not for the Python that asks, but for the one in the browser.
        command = [
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
            "--only-binary=:all:", "--platform", "any", "--abi", "none", "--implementation", "py",
            "--python-version", "3.14", "--require-hashes", "--dest", made, "--requirement", str(listed),
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise UnmadeError(f"pip did not bring {', '.join(wheels)} in {_SECONDS} seconds") from error
        lacking = [name for name, digest in wheels.items() if not _is(Path(made, name), digest)]
        if done.returncode or lacking:
            said = done.stderr.strip().splitlines()[-1:] or ["it did not say why"]
            raise UnmadeError(f"pip could not bring {', '.join(lacking or wheels)}: {said[0][-300:]}")
        for name in wheels:
            Path(made, name).replace(folder / name)
