"""HTTP for served models: connections kept, bounded work at once, retries that a server can pace, errors in its words.

urllib3 is what most Python clients stand on: safe in threads, with retries that heed `Retry-After`, and no dependencies
of its own.
"""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import urllib3

from drillrank.errors import ServerFailure

_CONNECT_SECONDS = 10.0
_LONGEST_PAUSE = 60.0  # seconds, whatever the server asks for
_PASSING = (408, 429, 500, 502, 503, 504)  # statuses that may be gone the next time


class _Patient(urllib3.Retry):
    """Waits as long as a server asks, within reason."""

    def get_retry_after(self, response: urllib3.BaseHTTPResponse) -> float | None:
        asked = super().get_retry_after(response)
        return None if asked is None else min(asked, _LONGEST_PAUSE)


class HTTPClient:
    """Asks one server for JSON.

    Args:
        root: Address without a path of its own.
        api_key_env: Environment variable that holds the API key; it is sent if it is set.
        timeout: Seconds that an answer may take.
        retries: How often a request is tried again after a failure that may pass.
        concurrency: Requests under way at once.
    """

    def __init__(self, root: str, *, api_key_env: str, timeout: float, retries: int, concurrency: int) -> None:
        self.root = root
        self._api_key_env = api_key_env
        self._concurrency = concurrency
        settings: dict[str, Any] = {
            "maxsize": concurrency,
            "block": True,
            "timeout": urllib3.Timeout(connect=min(timeout, _CONNECT_SECONDS), read=timeout),
            "retries": _Patient(
                total=retries,
                redirect=False,
                status_forcelist=_PASSING,
                allowed_methods=None,  # asking twice changes nothing on the server
                backoff_factor=0.5,
                backoff_max=30.0,
                backoff_jitter=0.2,
                raise_on_status=False,
            ),
        }
        parts = urlsplit(root)
        proxy = urllib.request.getproxies().get(parts.scheme)
        if proxy and not urllib.request.proxy_bypass(parts.hostname or ""):
            self._pool: urllib3.PoolManager = urllib3.ProxyManager(proxy, **settings)
        else:
            self._pool = urllib3.PoolManager(**settings)

    def get(self, path: str) -> Any:
        """The server's answer to a GET."""
        return self._ask("GET", path, None)

    def post(self, path: str, payload: Any) -> Any:
        """The server's answer to a POST.

        Raises:
            ServerFailure: it cannot be reached, refuses, or answers no JSON.
        """
        return self._ask("POST", path, payload)

    def post_all(self, path: str, payloads: Sequence[Any]) -> list[Any]:
        """The answers to several POSTs, in order; where one fails for good, the rest is not sent.

        Raises:
            ServerFailure: as `post`.
        """
        if len(payloads) == 1:
            return [self.post(path, payloads[0])]
        with ThreadPoolExecutor(self._concurrency) as pool:
            waiting = [pool.submit(partial(self.post, path, payload)) for payload in payloads]
            try:
                return [one.result() for one in waiting]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _ask(self, method: str, path: str, payload: Any) -> Any:
        url = f"{self.root}{path}"
        headers = {"Accept": "application/json"}
        if key := os.environ.get(self._api_key_env):
            headers["Authorization"] = f"Bearer {key}"
        try:
            response = self._pool.request(method, url, headers=headers, json=payload)
        except urllib3.exceptions.HTTPError as error:
            reason = getattr(error, "reason", None) or error
            raise ServerFailure(
                f"{url} could not be asked: {reason}. Does the server run, and is it given time (timeout, retries)?"
            ) from error
        text = response.data.decode("utf-8", "replace")
        if response.status != 200:
            hint = f" Set the environment variable {self._api_key_env}." if response.status in (401, 403) else ""
            raise ServerFailure(f"{url} answered {response.status}: {_words(text)}{hint}")
        try:
            return json.loads(text)
        except ValueError as error:
            raise ServerFailure(f"{url} answered no JSON: {text[:200]!r}") from error


def _words(text: str) -> str:
    """What a server says of a failure, out of the forms that it is wrapped in."""
    try:
        said = json.loads(text)
    except ValueError:
        said = text
    for name in ("error", "message", "detail"):
        if isinstance(said, dict) and name in said:
            said = said[name]
    return (said if isinstance(said, str) else json.dumps(said))[:500] or "nothing"
