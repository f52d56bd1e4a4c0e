"""Who may speak to the studio: whoever opened the address that the terminal printed, from that very page.

Other programs of the machine can reach the port, and so can every web page that the browser shows. So each request
must name this host (no DNS rebinding), carry the cookie that a one-time token was traded for, and, to change anything,
come from this origin with the token of its form.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpbayes.base.errors import InvalidArgument

LIFETIME = 900.0
"""Seconds for which a printed address can be opened."""

LARGEST_FORM = 4 * 2**20
"""Bytes of a form; a codebook of thousands of codes fits."""

SAFE = ("GET", "HEAD")
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers would send no origin with forms
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""On every answer that does not set its own."""


@dataclass
class Session:
    """The secrets of one run: the token of the printed address, the cookie, and the key of the forms' tokens."""

    origin: str
    """The address without a path, such as ``http://127.0.0.1:8765``."""
    tell: Callable[[str], None] = lambda _: None
    """Is told a fresh address when the last one was used or has expired."""
    clock: Callable[[], float] = time.monotonic
    _cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    _token: str = field(default="", init=False)
    _since: float = field(default=0.0, init=False)

    @property
    def cookie_name(self) -> str:
        """Browsers share cookies among the ports of a host, so the name has the port."""
        return f"dpbayes-studio-{self.origin.rpartition(':')[2]}"

    def address(self) -> str:
        """A new address to open: it works once, for a quarter of an hour."""
        self._token, self._since = secrets.token_urlsafe(32), self.clock()
        return f"{self.origin}/?token={self._token}"

    def opens(self, token: str) -> bool:
        """Whether the token is the one that was printed, unused and fresh; it is spent by asking."""
        fresh = bool(self._token) and self.clock() - self._since <= LIFETIME
        right = fresh and _same(token, self._token)
        if right or (self._token and not fresh):
            self.tell(self.address())
        return right

    def knows(self, cookies: Mapping[str, str]) -> bool:
        """Whether the request carries the cookie."""
        return _same(cookies.get(self.cookie_name, ""), self._cookie)

    def form_token(self, action: str) -> str:
        """The token of the form that is sent to this path."""
        return hmac.new(self._key, action.encode(), hashlib.sha256).hexdigest()

    def set_cookie(self, response: Response) -> None:
        """Let the browser in."""
        response.set_cookie(self.cookie_name, self._cookie, httponly=True, samesite="strict", path="/")


class Guard:
    """Checks every request before the application sees it; a form arrives as ``scope["form"]``."""

    def __init__(self, app: ASGIApp, *, session: Session | None, hosts: tuple[str, ...]) -> None:
        """Without a session, only reading is possible, and everyone may read."""
        self._app, self._session, self._hosts = app, session, {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let through."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        refused: Response | None = self._refusal(scope, headers)
        if refused is None and scope["method"] not in SAFE:
            body = await _body(receive)
            refused = self._form_refusal(scope, headers, body)
        await (refused or self._app)(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if headers.get("host", "").lower() not in self._hosts:
            return _no(421, "Studio: this host name is not the studio's. Open the address that it printed.")
        if scope["method"] not in (*SAFE, "POST"):
            return _no(405, "Studio: only GET and POST are understood.")
        session = self._session
        if session is None:
            return None if scope["method"] in SAFE else _no(405, "Studio: this studio only shows releases.")
        if scope["path"].startswith("/static/") and scope["method"] in SAFE:
            return None
        known = session.knows(_cookies(headers))
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        if scope["path"] == "/" and scope["method"] == "GET" and given:
            home = RedirectResponse("/", status_code=303)
            if session.opens(given[0]):
                session.set_cookie(home)
                return home
            no = _no(403, "Studio: this address was used already, or is too old. The terminal shows a new one.")
            return home if known else no
        no = _no(403, "Studio: this browser has not been let in. Open the address that the terminal shows.")
        return None if known else no

    def _form_refusal(self, scope: Scope, headers: Headers, body: bytes | None) -> Response | None:
        session = self._session
        assert session is not None  # refused above
        own = f"http://{headers.get('host', '').lower()}"  # one of the studio's names: that was checked
        if headers.get("origin") != own or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return _no(403, "Studio: this form came from another page. Use the studio's own.")
        if headers.get("content-type", "").split(";")[0].strip() != "application/x-www-form-urlencoded":
            return _no(415, "Studio: files cannot be uploaded. Name one inside the start folder.")
        if body is None:
            return _no(413, f"Studio: a form holds at most {LARGEST_FORM // 2**20} MiB.")
        try:
            form = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=40_000)
        except ValueError:
            return _no(400, "Studio: the form cannot be read.")
        own_token = session.form_token(scope["path"])
        if not any(_same(given, own_token) for given in form.pop("csrf", [])):  # a form may serve two addresses
            return _no(403, "Studio: this form is out of date. Open its page again.")
        scope["form"] = form
        return None


def allowed_hosts(host: str, port: int) -> tuple[str, ...]:
    """The values of the Host header that name this studio."""
    if host in LOOPBACK or host == "::1":
        return tuple(f"{name}:{port}" for name in LOOPBACK)
    return (f"{host}:{port}",)


def check_host(host: str, *, exposed: bool) -> None:
    """Refuse to listen where other machines could reach it, unless that was asked for in so many words."""
    if host in ("0.0.0.0", "::", "*", ""):  # noqa: S104 - it is refused
        raise InvalidArgument("studio: expected one address or name of this machine, since requests must name it.")
    if host not in (*LOOPBACK, "::1") and not exposed:
        raise InvalidArgument(
            f"studio: {host} can be reached from other machines. Use 127.0.0.1, or add --expose if you mean it."
        )


def attachment(name: str) -> dict[str, str]:
    """The header that makes a browser keep a file under this name."""
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _no(status: int, sentence: str) -> Response:
    return PlainTextResponse(sentence + "\n", status_code=status)


def _cookies(headers: Headers) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}


async def _body(receive: Receive) -> bytes | None:
    """The whole body, or None if it is too long."""
    body, more = bytearray(), True
    while more:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > LARGEST_FORM:
            return None
        more = message.get("more_body", False)  # a browser that left has no more
    return bytes(body)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
