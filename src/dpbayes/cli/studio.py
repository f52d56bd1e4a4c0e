"""``dpbayes studio``: plan, release and explain in the browser."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

from dpbayes.base.errors import DpbayesError, InvalidArgument, MissingExtra
from dpbayes.cli.command import Output
from dpbayes.cli.options import Text
from dpbayes.cli.output import tell


def studio(folder: Path = Path(), *, public: bool, port: int, expose: Text, no_browser: bool) -> Output:
    """Plan a release, see what readers will get, make it, and explain it. It sees and writes nothing outside FOLDER.

    Example: dpbayes studio . --no-browser --port 0
    """
    try:
        import uvicorn

        from dpbayes.studio.app import studio as made
        from dpbayes.studio.app import warm
        from dpbayes.studio.safety import Session, allowed_hosts, check_host
    except ModuleNotFoundError as problem:
        if (problem.name or "").split(".")[0] not in ("uvicorn", "starlette", "jinja2"):
            raise
        raise MissingExtra(f"studio: it needs {problem.name}. Install dpbayes[studio].") from None
    host = expose or "127.0.0.1"
    check_host(host, exposed=expose is not None)
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    origin = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    session = None if public else Session(origin, tell=lambda fresh: tell(f"To open another browser: {fresh}"))
    app = made(folder, session=session, hosts=allowed_hosts(host, port))
    address = f"{origin}/" if session is None else session.address()
    tell(f"The studio of {folder.resolve()} is open: {address}")
    if session is not None:
        tell("The address lets one browser in, once. Keep it to yourself. Ctrl-C stops the studio.")
    if not no_browser:
        _open(address)
    threading.Thread(target=warm, name="warm", daemon=True).start()
    # Nothing is logged: addresses hold the token, errors might quote a value. Logs of other libraries stay open.
    settings = uvicorn.Config(
        app, access_log=False, log_level="critical", log_config=None, server_header=False, lifespan="off"
    )
    uvicorn.Server(settings).run(sockets=[listening])
    return Output(None)


def _listen(host: str, port: int) -> socket.socket:
    """Take the port before the address is printed."""
    if not 0 <= port <= 65535:
        raise InvalidArgument(f"studio: expected a port from 0 to 65535, got {port}.")
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(where)
        made.listen()  # whoever opens the address at once waits a moment
    except OSError:
        raise DpbayesError(
            f"studio: cannot listen on {host}, port {port}. Another studio may be open: choose another --port."
        ) from None
    return made


def _open(address: str) -> None:
    """Open the browser if there is one; the address is printed anyway."""
    import contextlib
    import os
    import webbrowser

    if (
        os.environ.get("DISPLAY")
        or os.environ.get("WAYLAND_DISPLAY")
        or os.name == "nt"
        or os.uname().sysname == "Darwin"
    ):
        with contextlib.suppress(webbrowser.Error):
            webbrowser.open(address)
