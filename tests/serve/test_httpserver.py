"""What is written in one turn of the event loop leaves together, and nothing is held back for long."""

import asyncio
import socket
from collections.abc import Callable

from hybrid.serve.httpserver import Together
from tests.serve.app import App


class Beneath(asyncio.Transport):
    """Notes what is written and done."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[object] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.done.append(bytes(data))

    def close(self) -> None:
        self.done.append("close")

    def abort(self) -> None:
        self.done.append("abort")


def done(act: Callable[[Together], None]) -> list[object]:
    """What reaches the transport beneath by the end of the turn."""
    beneath = Beneath()

    async def turn() -> None:
        act(Together(beneath))
        await asyncio.sleep(0)

    asyncio.run(turn())
    return beneath.done


def test_what_is_written_in_one_turn_leaves_together() -> None:
    def act(transport: Together) -> None:
        transport.write(b"head ")
        transport.write(bytearray(b"body"))

    assert done(act) == [b"head body"]


def test_a_flush_waits_for_nothing() -> None:
    seen: list[object] = []

    def act(transport: Together) -> None:
        transport.write(b"answer")
        transport.flush()
        beneath = transport._beneath
        assert isinstance(beneath, Beneath)
        seen.extend(beneath.done)

    assert done(act) == seen == [b"answer"]


def test_what_is_held_leaves_before_the_end() -> None:
    def act(transport: Together) -> None:
        transport.write(b"last")
        transport.close()

    assert done(act) == [b"last", "close"]


def test_an_abort_leaves_nothing() -> None:
    def act(transport: Together) -> None:
        transport.write(b"lost")
        transport.abort()

    assert done(act) == ["abort"]


def test_a_large_answer_is_not_held_back() -> None:
    seen: list[int] = []

    def act(transport: Together) -> None:
        for _ in range(10):
            transport.write(bytes(30_000))
            beneath = transport._beneath
            assert isinstance(beneath, Beneath)
            seen.append(sum(len(one) for one in beneath.done if isinstance(one, bytes)))

    assert sum(len(one) for one in done(act) if isinstance(one, bytes)) == 300_000
    assert all(30_000 * number - left < 64 * 1024 for number, left in enumerate(seen, start=1))


def test_an_answer_arrives_in_one_piece(app: App) -> None:
    with socket.create_connection(("127.0.0.1", app.port), timeout=10) as client:
        for _ in range(20):
            client.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answer = client.recv(65_536)
            head, _, body = answer.partition(b"\r\n\r\n")
            assert f"content-length: {len(body)}".encode() in head.lower() and body
