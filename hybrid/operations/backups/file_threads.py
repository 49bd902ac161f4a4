"""Works on the files of a backup in several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from hybrid.progress import Progress

_THREADS = 4

File = TypeVar("File")
Result = TypeVar("Result")


def in_threads(
    work: Callable[[File], Result], files: Sequence[File], progress: Progress, label: str, threads: int = _THREADS
) -> list[Result]:
    """The results of some work on each file, in their order. After the first error no further file is begun."""
    results, pool = list[Result](), ThreadPoolExecutor(threads)
    try:
        for number, result in enumerate(pool.map(work, files), 1):
            results.append(result)
            progress.step(label, number, len(files))
    finally:
        pool.shutdown(cancel_futures=True)
    return results
