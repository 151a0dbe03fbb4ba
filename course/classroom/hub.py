"""A class beside a JupyterHub: whoever the hub knows is in it under the hub's name, and nobody types one.

    from course.classroom.hub import configure

    configure(get_config(), folder="/srv/sluice")     # in jupyterhub_config.py

A learner's server shows the class the token that the hub gave it; the class asks the hub whose it is. The class listens
on the hub's own machine alone, so servers have to run there too.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tornado.httpclient import AsyncHTTPClient, HTTPError

from course.classroom.class_file import ClassError
from course.learner.class_events import DEFAULT_PORT
from course.learner.hub_server import CLASS_VARIABLE

__all__ = ["API_VARIABLE", "HubUsers", "configure"]

API_VARIABLE = "JUPYTERHUB_API_URL"
"""Where a hub says to its services and servers how it is asked."""
_SERVICE = "sluice-class"
_SECONDS = 10.0
_START_SECONDS = 300
_MOST_TOKEN = 512


class HubUsers:
    """Whose a token is, asked of the hub at this address.

    Raises:
        ClassError: the address is none.
    """

    def __init__(self, api: str) -> None:
        if urlsplit(api).scheme not in {"http", "https"}:
            raise ClassError(f"a hub starts `sluice class serve --hub` and says in {API_VARIABLE} where it is")
        self._user = f"{api.rstrip('/')}/user"

    async def name_of(self, token: str) -> str:
        """The name of the user with this token.

        Raises:
            ClassError: the hub knows no such user, or does not answer.
        """
        if not token or len(token) > _MOST_TOKEN or not token.isascii() or not token.isprintable():
            raise ClassError("the hub knows nobody with that token")
        try:
            headers = {"Authorization": f"token {token}"}
            answer = await AsyncHTTPClient().fetch(self._user, headers=headers, request_timeout=_SECONDS)
            found = json.loads(answer.body)
        except HTTPError as error:
            if error.code in {401, 403, 404}:
                raise ClassError("the hub knows nobody with that token") from error
            raise ClassError(f"the hub does not answer ({error.code}); try again") from error
        except (OSError, ValueError) as error:
            raise ClassError("the hub does not answer as a hub does; try again") from error
        name = found.get("name") if isinstance(found, dict) and found.get("kind", "user") == "user" else None
        if not isinstance(name, str):
            raise ClassError("the hub knows no learner with that token")
        return name


def configure(
    config: Any, *, folder: Path | str, port: int = DEFAULT_PORT, title: str = "Sluice", python: str = sys.executable
) -> None:
    """Have a JupyterHub serve a class, and every user's server open the lessons and join it.

    `config` is what `get_config()` gives in jupyterhub_config.py; `folder` keeps the class, and is made by whoever
    starts the hub. `python` is the one that Sluice and jupyterhub are installed for. What you set afterwards holds.
    """
    serve = [python, "-m", "course.cli", "class", "serve", "--hub", "--port", str(port), "--title", title]
    command = [*serve, "--db", str(Path(folder).absolute() / "class.sqlite")]
    # Without a `url` the hub's proxy leads nobody to it: what came that way would look as if it came from this machine.
    config.JupyterHub.services = [*config.JupyterHub.get("services", []), {"name": _SERVICE, "command": command}]
    config.Spawner.cmd = [python, "-m", "course.learner.hub_server"]
    config.Spawner.environment = {**config.Spawner.get("environment", {}), CLASS_VARIABLE: f"127.0.0.1:{port}"}
    config.Spawner.default_url = "/lab/tree/work/00_start_here.ipynb"
    # A whole room logs in at once, and the machine is shared by all: 30 seconds, the default, are too few then.
    config.Spawner.start_timeout = config.Spawner.http_timeout = _START_SECONDS
    # Without it the hub takes the one of npm, which needs node.
    if find_spec("configurable_http_proxy") is not None:
        config.ConfigurableHTTPProxy.command = [sys.executable, "-m", "course.classroom.hub_proxy"]
