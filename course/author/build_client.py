"""The kernel that a lesson is built in: one for each notebook, and none afterwards, whatever ends the build."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from jupyter_core.utils import run_sync
from nbclient import NotebookClient

__all__ = ["OneKernel"]


class OneKernel(NotebookClient):
    """A client that leaves signals to the program it runs in.

    That of nbclient takes Ctrl-C and SIGTERM for itself, ends its kernel twice, and fails in the second time; so it
    does if a kernel does not start.
    """

    @asynccontextmanager
    async def async_setup_kernel(self, **kwargs: Any) -> AsyncIterator[None]:
        """The kernel, for as long as the block runs."""
        self.km = self.create_kernel_manager()
        try:
            await self.async_start_new_kernel(**kwargs)
            await self.async_start_new_kernel_client()
            yield
        except (KeyboardInterrupt, SystemExit, CancelledError):
            await self._kill()  # What interrupts may arrive in a step of the run as well as between two.
            raise
        finally:
            await self._async_cleanup_kernel()

    async def _async_cleanup_kernel(self) -> None:
        if self.km is not None:
            await super()._async_cleanup_kernel()
            self.km = None

    def end(self) -> None:
        """End the kernel, if what interrupted the run has left it; at once, for in good order it complains."""
        run_sync(self._kill)()

    async def _kill(self) -> None:
        if self.km is not None and self.km.provisioner is not None:
            await self.km.provisioner.kill()
            await self.km.provisioner.wait()
        await self._async_cleanup_kernel()
