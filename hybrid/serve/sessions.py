"""Sessions of browsers: a signed cookie that stands for an account, and what requests from a page must prove.

The cookie holds no secret of the account. It is signed with the secret of this server's start and the account's digest:
it ends with a restart, with its time, and as soon as the account is removed. Servers on one home share it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from urllib.parse import quote, urlsplit

from starlette.responses import RedirectResponse, Response

from hybrid.home.accounts import Account

SIGN_IN = "/ui/sign-in"
STATIC = "/ui/static/"
SESSION_S = 12 * 3600
_PREFIX = "hybrid_session"
_SAFE_METHODS = frozenset({"GET", "HEAD"})
_FORBIDDEN_IN_PLACE = ("//", "/\\")
Headers = Mapping[bytes, bytes]


def is_open_page(path: str) -> bool:
    """Whether a page is for everybody: the sign-in page, and the style sheets and scripts that it loads."""
    return path == SIGN_IN or path.startswith(STATIC)


def cookie_name(host: str) -> str:
    """The name of the session cookie of a Host header. Ports of one host share cookies, so the port is part of it."""
    port = host.rpartition(":")[2]
    return f"{_PREFIX}_{port}" if port.isdigit() else _PREFIX


def session_cookie(headers: Headers) -> str | None:
    """The value of a request's session cookie."""
    cookies = headers.get(b"cookie")
    if cookies is None:
        return None
    wanted = cookie_name(headers.get(b"host", b"").decode("latin-1"))
    # Not `http.cookies`: it drops all cookies when one, of another server on this host, is not well-formed.
    pairs = (part.partition("=") for part in cookies.decode("latin-1").split(";"))
    return next((value.strip() for name, _, value in pairs if name.strip() == wanted), None)


def session_value(account: Account, key: str, now_s: float) -> str:
    """A session of an account that begins now (seconds since the epoch)."""
    expires_s = int(now_s) + SESSION_S
    return f"{expires_s}.{_signature(account, key, expires_s)}.{account.name}"


def session_account(value: str, accounts: Iterable[Account], key: str, now_s: float) -> Account | None:
    """The account of a session; None when it has ended, was forged, or its account is gone."""
    expires, _, rest = value.partition(".")
    signature, _, name = rest.partition(".")
    if not (expires.isascii() and expires.isdigit() and len(expires) < 15) or int(expires) <= now_s:
        return None
    for account in accounts:
        if account.name == name and hmac.compare_digest(_signature(account, key, int(expires)), signature):
            return account
    return None


def _signature(account: Account, key: str, expires_s: int) -> str:
    text = f"{account.name}\n{account.digest}\n{expires_s}".encode()
    digest = hmac.new(key.encode("utf-8", "surrogateescape"), text, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def proves_same_origin(method: str, path: str, headers: Headers, by_cookie: bool) -> bool:
    """Whether a request that changes something comes from a page of this server, where a page may send it.

    A browser says so in Origin or Sec-Fetch-Site. Other clients send neither; they have no cookie and use other paths.
    """
    if method in _SAFE_METHODS or not (by_cookie or path.startswith("/ui/")):
        return True
    if headers.get(b"sec-fetch-site") == b"same-origin":
        return True
    origin = headers.get(b"origin", b"").decode("latin-1").lower()
    return origin.partition("://")[2] == headers.get(b"host", b"").decode("latin-1").lower() != ""


def sign_in_answer(method: str, path: str, query: str, headers: Headers) -> Response | None:
    """The way to the sign-in page, for a browser that opens a page without an account; None for other clients."""
    if not (path == "/" or path.startswith("/ui/")) or path.endswith(".json"):
        return None
    if b"hx-request" in headers:
        return Response(status_code=401, headers={"HX-Redirect": _sign_in_place(_page_of(headers))})
    if b"text/html" not in headers.get(b"accept", b""):
        return None
    place = (f"{path}?{query}" if query else path) if method in _SAFE_METHODS else "/"
    return RedirectResponse(_sign_in_place(place), status_code=303)


def local_place(place: object) -> str:
    """A path of this server to go on to; `/` for anything that might lead elsewhere."""
    if not isinstance(place, str) or not place.startswith("/") or place.startswith(_FORBIDDEN_IN_PLACE):
        return "/"
    return "/" if any(ord(character) < 0x20 for character in place) else place


def _sign_in_place(place: str) -> str:
    return f"{SIGN_IN}?next={quote(local_place(place), safe='')}"


def _page_of(headers: Headers) -> str:
    """The path and query of the page in which htmx asks for a part."""
    try:
        url = urlsplit(headers.get(b"hx-current-url", b"").decode("latin-1"))
    except ValueError:
        return "/"
    return f"{url.path}?{url.query}" if url.query else url.path


def is_script_of_page(headers: Headers) -> bool:
    """Whether a script of a page sends the request. To a challenge its browser would ask for a password itself."""
    return b"sec-fetch-mode" in headers and headers[b"sec-fetch-mode"] != b"navigate"
