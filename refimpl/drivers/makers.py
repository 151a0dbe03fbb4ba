"""The one place where it is decided whether a job takes the shortcuts."""

from __future__ import annotations

from refimpl.config import Config
from refimpl.errors import ConfigError
from refimpl.job.makers import Makers

__all__ = ["makers_of"]


def makers_of(config: Config, default: bool = True) -> Makers:
    """The makers of a job's parts: those of `config.shortcuts`, or of the driver's `default` where it says nothing.

    The shortcuts need numpy. Where it is not, or where they have been deleted, a job that did not ask for them runs on
    the plain parts.

    Raises:
        ConfigError: the job asks for shortcuts, and they cannot be loaded.
    """
    if not (default if config.shortcuts is None else config.shortcuts):
        return Makers()
    try:
        from refimpl.shortcuts.makers import FastMakers
    except ModuleNotFoundError as missing:
        if config.shortcuts:
            raise ConfigError("shortcuts", True, f"there is no module {missing.name}") from missing
        return Makers()
    return FastMakers()
