"""The folder that the processes of one cluster share: its secret, who leads, its jobs, and their checkpoints."""

from __future__ import annotations

from pathlib import Path

from refimpl.drivers.cluster.high_availability.job_folder import JobFolder
from refimpl.drivers.cluster.high_availability.leases import LeaseFolder
from refimpl.drivers.cluster.rpc.secret import ClusterSecret
from refimpl.drivers.file_store import FileStore
from refimpl.errors import ConfigError

__all__ = ["ClusterFolder"]


class ClusterFolder:
    """What is in `folder`. Only its owner may read it: there is the secret of the cluster, and jobs are pickled.

    Raises:
        ConfigError: there is no cluster's folder, or it cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        if not self.folder.is_dir():
            raise ConfigError("folder", str(folder), "there is no such folder; a cluster makes it when it is started")
        self.secret = ClusterSecret.of_file(self.folder / "secret")
        self.store = FileStore(self.folder / "checkpoints")
        self.leases = LeaseFolder(FileStore(self.folder / "leaders", fsync=False))
        self.jobs = JobFolder(FileStore(self.folder / "jobs"))

    @property
    def logs(self) -> Path:
        """Where what each process prints is, in a file of its name; made if it is not there."""
        (self.folder / "logs").mkdir(exist_ok=True)
        return self.folder / "logs"

    @classmethod
    def make(cls, folder: Path) -> ClusterFolder:
        """The folder, made if it is not there.

        Raises:
            ConfigError: it cannot be made, or is that of something else.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigError("folder", str(folder), f"{error.strerror}") from error
        if not (folder / "secret").exists():
            if any(folder.iterdir()):
                raise ConfigError("folder", str(folder), "it is of something else: there are files, and no secret")
            ClusterSecret.make_file(folder / "secret")
        return cls(folder)
