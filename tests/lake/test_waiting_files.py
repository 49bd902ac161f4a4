"""Files whose rows have all moved are told by their statistics."""

from __future__ import annotations

from hybrid.lake.log_entries import DataFile
from hybrid.lake.waiting_files import waiting_files
from hybrid.table.boundary import INFINITE, Boundary, PartitionKey
from hybrid.table.columns import OFFSET, PARTITION, TIME


def test_files_that_are_taken_over_are_not_looked_at() -> None:
    first, second = PartitionKey("kafka", "t", 0, 0), PartitionKey("kafka", "t", 0, 1)
    before = Boundary(100, {first: 10, second: 20})

    def file(partition: int, offset: int, last: int) -> DataFile:
        low = {TIME: 0, PARTITION: partition, OFFSET: 0}
        return DataFile(f"{partition}-{offset}", "s", 5, 1, 0, low, {TIME: last, PARTITION: partition, OFFSET: offset})

    moved, late, fresh = file(0, 9, 99), file(1, 20, 99), file(0, 9, 100)
    unknown = DataFile("x", "s", 5, 1, 0)
    files = [moved, late, fresh, unknown]
    assert waiting_files(files, before, {first: 10, second: 21}) == [late, fresh, unknown]
    assert waiting_files(files, before, {first: 11, second: 20}) == [fresh, unknown]
    assert waiting_files(files, Boundary(), {first: 11, second: 20}) == files
    assert waiting_files(files, Boundary(INFINITE, before.frontier), {first: 10, second: 21})[:1] == [late]


def test_where_times_alone_decide_offsets_do_not_count() -> None:
    old = DataFile("a", "s", 5, 1, 0, {TIME: 0, PARTITION: 0}, {TIME: 99, PARTITION: 0, OFFSET: 1000})
    new = DataFile("b", "s", 5, 1, 0, {TIME: 0, PARTITION: 0}, {TIME: 100, PARTITION: 0, OFFSET: 1})
    assert waiting_files([old, new], Boundary(100), {}) == [new]
