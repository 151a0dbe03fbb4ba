"""A real JupyterLab and a real Chromium, to be driven by tests and by measurements."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import BrowserContext, Page, sync_playwright

from course.learner import lab as course_lab

ROOT = Path(__file__).resolve().parents[2]
GET_ONE = (
    "no Chromium found: apt-get install chromium (Debian), brew install --cask chromium (macOS), "
    "or set SLUICE_CHROMIUM to the program"
)

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]  # fmt: skip

SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    # A view saved with the notebook can be scrubbed when it is opened again, without its kernel.
    "@jupyter-widgets/jupyterlab-manager/plugin": {"saveState": True},
}

READY = """async () => {
  const panel = jupyterapp.shell.currentWidget; await panel.revealed; await panel.sessionContext.ready;
  for (let i = 0; i < 2400; i++) {
    const kernel = panel.sessionContext.session?.kernel;
    if (kernel && kernel.connectionStatus === 'connected' && kernel.status === 'idle') return true;
    await new Promise(done => setTimeout(done, 100));
  }
  throw Error('the kernel did not become idle'); }"""

OPEN = "path => jupyterapp.commands.execute('docmanager:open', { path, factory: 'Notebook' }).then(() => null)"

CLOSE = """() => {
  for (const panel of [...jupyterapp.shell.widgets('main')]) {
    if (panel.context) panel.context.model.dirty = false;  // or it would ask whether to save
    panel.close();
  } }"""

RUN = """async index => {
  const notebook = jupyterapp.shell.currentWidget.content; notebook.activeCellIndex = index;
  await jupyterapp.commands.execute('notebook:run-cell');
  return notebook.widgets[index].model.outputs.toJSON()
    .map(output => [].concat(output.text ?? output.evalue ?? '').join('')).join(''); }"""

OUTPUTS = "index => jupyterapp.shell.currentWidget.content.widgets[index].model.outputs.toJSON()"


def chromium() -> str | None:
    """The browser to drive, or `None`."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return os.environ.get("SLUICE_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab."""

    base: str
    token: str
    root: Path

    def api(self, path: str, method: str = "GET") -> Any:
        request = urllib.request.Request(
            f"{self.base}/api/{path}", method=method, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            body = answer.read()
        return json.loads(body) if body else None


@contextmanager
def running_lab(home: Path, root: Path) -> Iterator[Lab]:
    """A JupyterLab that serves `root` and keeps all it writes in `home`."""
    token = secrets.token_hex(8)
    for plugin, settings in SETTINGS.items():
        file = home / "settings" / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(settings))
    port = free_port()
    places = {
        "HOME": ".", "JUPYTER_CONFIG_DIR": "c", "JUPYTER_DATA_DIR": "d", "JUPYTER_RUNTIME_DIR": "r",
        "IPYTHONDIR": "i", "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "w",
    }  # fmt: skip
    env = {**os.environ, **{name: str(home / place) for name, place in places.items()}, "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={root}",
        "--expose-app-in-browser", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
    ]  # fmt: skip
    with _served(command, Lab(f"http://127.0.0.1:{port}", token, root), env, home) as lab:
        yield lab


@contextmanager
def running_sluice_lab(home: Path, root: Path, more_config: str = "") -> Iterator[Lab]:
    """The same as `sluice lab` starts it, with its configuration and then `more_config`."""
    token = secrets.token_hex(8)
    env = {**course_lab._environment(root, home, token), "PYTHONPATH": str(ROOT)}
    with (home / "config" / "jupyter_server_config.py").open("a") as config:
        config.write(f"c.LabApp.expose_app_in_browser = True\n{more_config}")
    port = free_port()
    with _served(course_lab._command(root, port), Lab(f"http://127.0.0.1:{port}", token, root), env, home) as lab:
        yield lab


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _served(command: list[str], lab: Lab, env: dict[str, str], home: Path) -> Iterator[Lab]:
    with (home / "lab.log").open("wb") as log:
        server = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.PIPE, env=env, cwd=lab.root
        )
        try:
            _wait_for(lab, server, home / "lab.log")
            try:
                yield lab
            finally:
                if server.poll() is None:  # kernels first: a live server restarts a killed kernel
                    close_kernels(lab)
        finally:
            server.terminate()
            server.wait(60)


def _wait_for(lab: Lab, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1800):  # on a busy machine its packages alone take half a minute to load
        try:
            lab.api("status")
        except OSError:
            assert server.poll() is None, log.read_text()[-2000:]
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"JupyterLab did not answer: {log.read_text()[-2000:]}")


def close_kernels(lab: Lab) -> None:
    for kernel in lab.api("kernels"):
        lab.api(f"kernels/{kernel['id']}", "DELETE")


@contextmanager
def running_chromium(folder: Path, program: str) -> Iterator[BrowserContext]:
    """A browser that reaches nothing but this machine."""
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(folder),
            executable_path=program,
            headless=True,
            args=FLAGS,
            viewport={"width": 1500, "height": 1000},
        )
        yield context
        context.close()


def opened(page: Page, lab: Lab, name: str, cells: list[str] | None = None) -> Notebook:
    """A notebook, of these code cells if there are some, open in `page`, its kernel ready."""
    if cells is not None:
        _write(lab, name, cells)
    page.goto(f"{lab.base}/lab/tree/{name}?token={lab.token}&reset", wait_until="domcontentloaded")
    return _ready(page, name)


def opened_next(page: Page, lab: Lab, name: str, cells: list[str]) -> Notebook:
    """A notebook of these code cells, in the JupyterLab that `page` has loaded already, if it has."""
    if not page.evaluate("() => 'jupyterapp' in window"):
        return opened(page, lab, name, cells)
    _write(lab, name, cells)
    page.evaluate(OPEN, name)
    return _ready(page, name)


def close_notebooks(page: Page) -> None:
    """Close all that are open in a page; nothing is saved, and their kernels go on."""
    page.evaluate(CLOSE)
    page.wait_for_function("() => ![...jupyterapp.shell.widgets('main')].some(panel => panel.sessionContext)")


def _write(lab: Lab, name: str, cells: list[str]) -> None:
    written = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    written.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(written, lab.root / name)


def _ready(page: Page, name: str) -> Notebook:
    """The notebook of this name, once it is what the page shows and its kernel is there."""
    page.wait_for_function(
        "name => window.jupyterapp?.shell?.currentWidget?.sessionContext?.path === name", arg=name, timeout=120_000
    )
    page.evaluate(READY)
    return Notebook(page)


@dataclass(frozen=True)
class Notebook:
    """A notebook open in the browser."""

    page: Page

    def run(self, index: int) -> str:
        """Run a cell and return what it printed."""
        return self.page.evaluate(RUN, index)

    def start(self, index: int) -> None:
        """Run a cell and do not wait for it."""
        self.page.evaluate(
            "index => { jupyterapp.shell.currentWidget.content.activeCellIndex = index; "
            "jupyterapp.commands.execute('notebook:run-cell'); }",
            index,
        )

    def outputs(self, index: int) -> list[dict[str, Any]]:
        return self.page.evaluate(OUTPUTS, index)

    def save(self) -> None:
        self.page.evaluate("jupyterapp.commands.execute('docmanager:save')")

    def restart_kernel(self) -> None:
        self.page.evaluate("jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
        self.page.evaluate(READY)

    def theme(self, name: str) -> None:
        self.page.evaluate("name => jupyterapp.commands.execute('apputils:change-theme', {theme: name})", name)
        wanted = "false" if "Dark" in name else "true"
        self.page.wait_for_function("wanted => document.body.dataset.jpThemeLight === wanted", arg=wanted)
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")

    def until(self, script: str, **options: Any) -> None:
        """Wait until a synchronous expression of the page holds."""
        self.page.wait_for_function(script, timeout=60_000, **options)
