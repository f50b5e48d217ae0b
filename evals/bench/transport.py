"""What HTTP adds to a search: CPU of the server against that of a process which reads questions and does nothing else.

Both are asked the same questions in turns, so that what else the machine does counts for both; the medians of the
quieter half of the turns are compared.
"""

from __future__ import annotations

import http.client
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, urlsplit

from _server import releases, server

TURNS, QUESTIONS = 40, 50
BARE = """
import sys
from pathlib import Path
from octavo_serve.callers.views import View
from octavo_serve.catalog import open_catalog
from octavo_serve.faces import compact_json
from octavo_serve.requests import SearchRequest

view = View(open_catalog(Path(sys.argv[1])))
for line in sys.stdin:
    found = compact_json(view.search(SearchRequest(query=line.strip(), pack="octavo")))
    sys.stdout.buffer.write(found + b"\\n")
    sys.stdout.buffer.flush()
"""


def main() -> None:
    dist = releases()
    texts = [f"how do I roll back to release {number % 7}" for number in range(QUESTIONS)]
    with (
        subprocess.Popen([sys.executable, "-c", BARE, dist], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as bare,
        server(dist) as (address, process),
    ):
        connection = http.client.HTTPConnection(urlsplit(address).netloc)

        def search_bare(text: str) -> None:
            assert bare.stdin is not None
            assert bare.stdout is not None
            bare.stdin.write(f"{text}\n".encode())
            bare.stdin.flush()
            bare.stdout.readline()

        def search(text: str, **headers: str) -> str:
            connection.request("GET", f"/search?pack=octavo&q={quote(text)}", headers=headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == (304 if headers else 200)
            return answer.headers["etag"]

        tags = {text: search(text) for text in texts}

        def search_held(text: str) -> None:
            search(text, **{"If-None-Match": tags[text]})

        turns: list[list[float]] = []
        for _ in range(TURNS + 4):
            asked = ((bare.pid, search_bare), (process.pid, search), (process.pid, search_held))
            turns.append([_milliseconds(pid, ask, texts) for pid, ask in asked])
        # the first turns warm up
        quiet = sorted(turns[4:], key=sum)[: TURNS // 2]
        alone, over_http, held = (statistics.median(turn[each] for turn in quiet) for each in range(3))
        print(
            f"CPU ms a search: alone {alone:.2f}, over HTTP {over_http:.2f} (+{over_http - alone:.2f}), 304 {held:.2f}"
        )
        bare.kill()


def _milliseconds(pid: int, ask: Callable[[str], object], texts: list[str]) -> float:
    """CPU time of a process for each of some questions, its threads included."""
    before = _nanoseconds(pid)
    for text in texts:
        ask(text)
    return (_nanoseconds(pid) - before) / 1e6 / len(texts)


def _nanoseconds(pid: int) -> int:
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())


if __name__ == "__main__":
    main()
