from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from octavo_artifact.errors import OctavoError
from octavo_build.workers import Workers


def test_workers_keep_the_order_of_shards():
    with Workers(2) as workers:
        assert list(workers.map(len, ["a" * (50 - number) for number in range(50)])) == list(range(50, 0, -1))


def test_workers_serve_several_threads():
    with Workers(2) as workers, ThreadPoolExecutor(3) as threads:

        def lengths(text: str) -> list[int]:
            return list(workers.map(len, [text] * 5))

        results = list(threads.map(lengths, ["a", "bb", "ccc"]))

    assert results == [[1] * 5, [2] * 5, [3] * 5]


def test_a_worker_that_dies_is_one_clear_error():
    with Workers(1) as workers, pytest.raises(OctavoError, match="a worker process ended unexpectedly") as caught:
        list(workers.map(os._exit, [9]))

    assert caught.value.__suppress_context__


def test_workers_ignore_an_interrupt():
    with Workers(1) as workers:
        assert list(workers.map(eval, ["__import__('signal').getsignal(2)"])) == [signal.SIG_IGN]


def test_workers_end_with_a_killed_parent():
    program = (
        "import time; from octavo_build.workers import Workers\n"
        "with Workers(1) as workers:\n"
        "    print(*workers.map(eval, ['__import__(\"os\").getpid()']), flush=True)\n"
        "    list(workers.map(time.sleep, [600]))\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        worker = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    try:
        assert select.select([worker], [], [], 30)[0]
    finally:
        os.close(worker)
