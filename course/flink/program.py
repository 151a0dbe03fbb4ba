"""Java programs of ours that run beside Flink's jar, compiled once for each version of their source."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from course.flink.command import JAR, find_compiler, jar_path

__all__ = ["CompileError", "FlinkProgram"]


class CompileError(Exception):
    """The source did not compile; the text is the compiler's."""


@dataclass(frozen=True, slots=True)
class FlinkProgram:
    """A source file whose classes go into a folder beside the jar, named by `prefix` and what is in it."""

    source: Path
    prefix: str

    def classes(self, folder: Path) -> Path:
        """Where the classes of today's source are, compiled or not yet."""
        digest = hashlib.sha256(self.source.read_bytes() + JAR.sha256.encode()).hexdigest()
        return folder / f"{self.prefix}-{digest[:16]}"

    def compiled(self, folder: Path) -> Path:
        """Return the folder of the classes; compile them if they are not there.

        They are compiled aside and moved, so a folder of that name is complete, and two may do this at the same time.
        """
        classes = self.classes(folder)
        if classes.is_dir():
            return classes
        with tempfile.TemporaryDirectory(prefix="compiling-", dir=folder, ignore_cleanup_errors=True) as aside:
            fresh = Path(aside) / "classes"
            command = [*find_compiler(folder).command, "-nowarn", "-d", str(fresh), "-cp", str(jar_path(folder))]
            command.append(str(self.source))
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
            if done.returncode:
                raise CompileError(f"{self.source.name} did not compile:\n{done.stdout}{done.stderr}")
            try:
                fresh.rename(classes)
            except OSError:
                if not classes.is_dir():  # else somebody was faster
                    raise
        return classes
