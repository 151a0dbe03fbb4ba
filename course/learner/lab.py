"""`sluice lab`: JupyterLab on the learner's copies of the lessons, on this machine only.

The server gets a configuration of its own, so that it neither changes nor obeys what the user set up for other
notebooks; appearance and shortcuts (the user's JupyterLab settings) are kept.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path

from course.curriculum.own_lessons import OwnLessonError
from course.data.scratch import scratch
from course.learner.language_command import add_option, chosen
from course.learner.lessons import LessonsError, hand_out_all
from course.learner.next_exercise import listing
from course.places import lessons_folder, own_lessons_folder, work_folder

__all__ = ["add_arguments", "free_port", "is_free", "register_kernel", "run"]

FIRST_PORT = 8888
NUM_PORTS = 50
START_SECONDS = 90.0
STOP_SECONDS = 15.0

# No news, no question about updates: the course works without a network, and a pop-up would cover the first lesson.
# A kernel and its Spark take 0.65 GB: they go when the tab of their notebook is closed.
# Views are saved with the notebook, so that they are there when it is opened again.
_OVERRIDES = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension:tracker": {"kernelShutdown": True},
    "@jupyter-widgets/jupyterlab-manager:plugin": {"saveState": True},
    "@jupyterlab/filebrowser-extension:browser": {"showLastModifiedColumn": False},  # so that names have room
    "@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Markdown Preview"}},  # the glossary
}

# Jupyter leaves Nagle's algorithm on, which sends the frames of a live view in bursts, 45 ms apart: the same trade of
# delay for fewer packets as Flink's buffer timeout. Half of the waiting time is what a kernel has to end its Spark.
# Who closes the whole window closes no tab: a kernel that does nothing, and that no page is connected to, ends later.
# We hold the other end of the server's standard input: when we are gone, even killed, it reads the end and ends too.
_SERVER_CONFIG = """\
import os
import signal
import threading

import jupyter_server.services.kernels.websocket as websocket

c = get_config()
c.KernelManager.shutdown_wait_time = 12.0
c.LabApp.custom_css = True
c.MappingKernelManager.cull_idle_timeout = 900
c.MappingKernelManager.cull_interval = 60
# "Save and Export" of a notebook with views: their stills, for the moving ones would be asked of servers elsewhere.
c.NbConvertBase.display_data_priority = [
    "text/html", "text/markdown", "image/svg+xml", "text/latex", "image/png", "image/jpeg", "text/plain"
]


def end_with_parent():
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


threading.Thread(target=end_with_parent, daemon=True).start()

_open = websocket.KernelWebsocketHandler.open


async def open_without_delay(self, kernel_id):
    self.set_nodelay(True)
    return await _open(self, kernel_id)


websocket.KernelWebsocketHandler.open = open_without_delay
"""

# Reports, tables and pictures in text stand in columns, 96 at most: on a narrow page they become smaller, until they
# could not be read; then they scroll. They break in no word, and what stands below a letter stays there.
_STYLE = """\
.jp-OutputArea-output.jp-RenderedText {
  container-type: inline-size;
}
.jp-ThemedContainer .jp-OutputArea-output.jp-RenderedText pre {
  font-size: clamp(10px, 100cqi / 58.5, var(--jp-code-font-size));
  white-space: pre;
  overflow-wrap: normal;
  word-break: normal;
  overflow-x: auto;
}
"""


class LabError(RuntimeError):
    """JupyterLab cannot run; the text says why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `sluice lab`."""
    parser.add_argument(
        "--host",
        type=_address,
        default="127.0.0.1",
        metavar="ADDRESS",
        help="listen there (%(default)s: this machine only; a container needs 0.0.0.0, unencrypted)",
    )
    parser.add_argument("--copy-only", action="store_true", help="bring the copies of the lessons up to date, and end")
    add_option(parser)
    parser.add_argument("--no-browser", action="store_true", help="print the address, open nothing")
    parser.add_argument("--port", type=_port, default=FIRST_PORT, metavar="N", help="first port to try (%(default)s)")


def _port(text: str) -> int:
    """A port as an argument."""
    if not text.isdecimal() or not 1 <= int(text) <= 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 65535")
    return int(text)


def _address(text: str) -> str:
    """An address to listen on, as an argument."""
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address such as 127.0.0.1 or 0.0.0.0") from error


def run(arguments: argparse.Namespace) -> int:
    """Hand out the lessons and serve them until Ctrl-C; return the exit status."""
    work = work_folder()
    if arguments.language is not None and (status := chosen(arguments.language)):
        return status
    os.environ.update(_own_places(work))  # here too: a lesson is handed out as one that Jupyter trusts
    try:
        for line in hand_out_all(work):
            print(line)
        if arguments.copy_only:
            print(f"Your copies of the lessons are in {work}.")
            return 0
        port = free_port(arguments.port, arguments.host)
        with scratch("lab") as temporary:
            return _serve(work, arguments.host, port, temporary, opens_browser=not arguments.no_browser)
    except (LessonsError, LabError, OwnLessonError) as error:
        print(error, file=sys.stderr)
        return 3
    except OSError as error:
        print(f"Cannot start JupyterLab: {error}", file=sys.stderr)
        return 3


def free_port(wanted: int, host: str = "127.0.0.1") -> int:
    """Return `wanted` or the next port of `host` that is free, and say so when it is another one.

    Raises:
        LabError: it and the 49 after it are in use.
    """
    for port in range(wanted, min(wanted + NUM_PORTS, 65_536)):
        if not is_free(port, host):
            continue
        if port != wanted:
            print(f"Port {wanted} is in use; taking {port}.")
        return port
    raise LabError(f"Ports {wanted} to {wanted + NUM_PORTS - 1} are in use; name another one with --port.")


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a server could listen on this port of `host`."""
    with socket.socket() as probe:
        # As the server does it: a port that was closed a moment ago counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _serve(work: Path, host: str, port: int, folder: Path, *, opens_browser: bool) -> int:
    """Run the server until it ends or is interrupted."""
    token, log = secrets.token_hex(24), work / ".jupyter" / "lab.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("wb") as output:
        # Its own session, so that Ctrl-C reaches us alone and the server does not ask "Shut down? (y/n)".
        server = subprocess.Popen(
            _command(work, port, host),
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.PIPE,
            env=_environment(work, folder, token),
            cwd=work,
            start_new_session=True,
        )
    try:
        near = "127.0.0.1" if ipaddress.ip_address(host).is_unspecified else host
        _wait_until_ready(server, f"{near}:{port}", token, log)
        first = min(path.name for path in work.glob("[0-9][0-9]_*.ipynb"))
        url = f"http://{near}:{port}/lab/tree/{first}?token={token}"
        if not ipaddress.ip_address(near).is_loopback or near != host:
            print("! Whoever reaches this machine and sees the token can run programs here; nothing is encrypted.")
        print(f"\nJupyterLab is ready. Open this address (it holds your token, so keep it to yourself):\n\n    {url}\n")
        print(f"Your copies of the lessons are in {work}. Ctrl-C stops the server.", flush=True)
        if opens_browser and _has_screen():
            webbrowser.open(url)
        if status := server.wait():
            print(f"JupyterLab ended by itself with status {status}; see {log}.", file=sys.stderr)
        return 1 if status else 0
    except KeyboardInterrupt:
        print("\nStopping JupyterLab and its kernels …", flush=True)
        raise
    finally:
        _stop(server)


def _command(work: Path, port: int, host: str = "127.0.0.1") -> list[str]:
    """Return the command that starts the server."""
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", f"--ip={host}", f"--port={port}"]
    command += ["--ServerApp.port_retries=0", f"--ServerApp.root_dir={work}", "--LabApp.extension_manager=readonly"]
    command += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--ServerApp.log_level=WARN"]
    return [*command, "--allow-root"] if os.geteuid() == 0 else command


def _environment(work: Path, folder: Path, token: str) -> dict[str, str]:
    """Write the server's configuration into `folder` and return its environment."""
    config, data = folder / "config", folder / "data"
    (config / "labconfig").mkdir(parents=True)
    (config / "custom").mkdir()
    (config / "custom" / "custom.css").write_text(_STYLE, encoding="utf-8")
    (config / "labconfig" / "default_setting_overrides.json").write_text(json.dumps(_OVERRIDES), encoding="utf-8")
    (config / "jupyter_server_config.py").write_text(_SERVER_CONFIG, encoding="utf-8")
    shown = {"sluiceLessons": json.dumps(listing())}
    (config / "labconfig" / "page_config.json").write_text(json.dumps(shown), encoding="utf-8")
    register_kernel(data / "kernels")
    _link_extensions(data / "labextensions")

    env = dict(os.environ)
    # The kernels run in the work folder, where a relative name, or the current folder, is another place.
    env["SLUICE_WORK"], env["SLUICE_LESSONS"] = str(work), str(lessons_folder())
    env["SLUICE_OWN_LESSONS"] = str(own_lessons_folder())
    if locales := env.get("SLUICE_LOCALES"):
        env["SLUICE_LOCALES"] = str(Path(locales).resolve())
    env |= _own_places(work)
    Path(env["HOME"]).mkdir(parents=True, exist_ok=True)
    settings = Path(env.get("JUPYTER_CONFIG_DIR") or Path(env["HOME"], ".jupyter")) / "lab" / "user-settings"
    env.setdefault("JUPYTERLAB_SETTINGS_DIR", str(settings))
    env["JUPYTERLAB_WORKSPACES_DIR"] = str(work / ".jupyter" / "workspaces")
    env["JUPYTER_CONFIG_DIR"] = str(config)
    env["JUPYTER_PATH"] = os.pathsep.join(filter(None, (str(data), env.get("JUPYTER_PATH"))))
    env["JUPYTER_RUNTIME_DIR"] = str(folder / "runtime")
    # By the environment, because every user of the machine can read the arguments of a process.
    env["JUPYTER_TOKEN"] = token
    env["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), env.get("PATH", os.defpath)))
    return env


def _link_extensions(folder: Path) -> None:
    """Put all extensions of JupyterLab into one folder: those of the views, and the list of lessons.

    JupyterLab looks for extensions with a pattern, so in a checkout named `sluice [1]` it would not find them.
    """
    folder.mkdir()
    for each in (Path(sys.prefix) / "share" / "jupyter" / "labextensions").iterdir():
        (folder / each.name).symlink_to(each)
    (folder / "sluice-lessons").symlink_to(Path(__file__).with_name("labextension"))


def _own_places(work: Path) -> dict[str, str]:
    """Environment variables with which Jupyter and IPython keep what they know, and whom they trust, in `work`."""
    own = work / ".jupyter"
    # Without a home, Jupyter would answer with errors, and IPython and matplotlib would leave folders in /tmp.
    home = Path.home() if _has_home() else own / "home"
    return {"HOME": str(home), "IPYTHONDIR": str(own / "ipython"), "JUPYTER_DATA_DIR": str(own / "data")}


def _has_home() -> bool:
    """Whether the user has a home folder that can be written; some containers and services do without."""
    return os.access(os.path.expanduser("~"), os.W_OK | os.X_OK)  # noqa: PTH111 (Path knows only users with a home)


def register_kernel(kernels: Path) -> Path:
    """Register this Python as the kernel `python3` in the folder `kernels`, and return the folder.

    The notebooks ask for `python3`, and another program may have registered that name for another Python.
    """
    folder = kernels / "python3"
    folder.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3 (Sluice)", "language": "python", "metadata": {"debugger": True}}
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    return kernels


def _wait_until_ready(server: subprocess.Popen[bytes], place: str, token: str, log: Path) -> None:
    """Wait until the server answers.

    Raises:
        LabError: it ended or did not answer in time; the text holds the end of its log.
    """
    request = urllib.request.Request(f"http://{place}/api/status", headers={"Authorization": f"token {token}"})
    # A proxy of the user's environment must not be asked for an address of this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        try:
            with opener.open(request, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
    raise LabError(f"JupyterLab did not start. The end of {log}:\n{tail}")


def _has_screen() -> bool:
    """Whether a browser window could appear; on a server, a text browser would take over the terminal."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _stop(server: subprocess.Popen[bytes]) -> None:
    """End the server, which ends its kernels; a second Ctrl-C meanwhile changes nothing."""
    if server.poll() is not None:
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        server.terminate()
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()  # kernels notice that their server is gone and end by themselves
            server.wait()
    finally:
        signal.signal(signal.SIGINT, before)
