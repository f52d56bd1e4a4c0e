"""``dpbayes studio``: plan, release and explain in the browser."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Annotated

import typer

from dpbayes.base.errors import InvalidArgument, MissingExtra
from dpbayes.cli.output import tell

PORT = 8765


def studio_command(
    folder: Annotated[Path, typer.Argument(help="The start folder: the studio sees and writes nothing else.")] = Path(),
    public: Annotated[
        bool, typer.Option("--public", help="For readers: show the releases in the folder, and nothing else.")
    ] = False,
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = PORT,
    host: Annotated[str, typer.Option(help="Address to listen on; others than 127.0.0.1 need --expose.")] = "127.0.0.1",
    expose: Annotated[bool, typer.Option("--expose", help="Let other machines reach it.")] = False,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
) -> None:
    """Plan a release in the browser, see what readers will get, make it, and explain it. Stop with Ctrl-C.

    Example: dpbayes studio demo
    """
    try:
        import uvicorn

        from dpbayes.studio.app import studio, warm
        from dpbayes.studio.safety import Session, allowed_hosts, check_host
    except ModuleNotFoundError as problem:
        if (problem.name or "").split(".")[0] not in ("uvicorn", "starlette", "jinja2"):
            raise
        raise MissingExtra(f"studio: it needs {problem.name}. Install dpbayes[studio].") from None
    check_host(host, exposed=expose)
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    origin = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    session = None if public else Session(origin, tell=lambda fresh: tell(f"To open another browser: {fresh}"))
    app = studio(folder, session=session, hosts=allowed_hosts(host, port))
    address = f"{origin}/" if session is None else session.address()
    tell(f"The studio of {folder.resolve()} is open: {address}")
    if session is not None:
        tell("The address lets one browser in, once. Keep it to yourself. Ctrl-C stops the studio.")
    if browser:
        _open(address)
    threading.Thread(target=warm, name="warm", daemon=True).start()
    # Neither addresses nor errors are logged: the first hold the token, the second might quote a value.
    settings = uvicorn.Config(app, access_log=False, log_level="critical", server_header=False, lifespan="off")
    uvicorn.Server(settings).run(sockets=[listening])


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
        raise InvalidArgument(
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
