"""Which files a source has."""

import os

import pytest

from hybrid.errors import DataError, NotFoundError
from hybrid.flow.declared.listing import base_folder, list_files, next_files
from hybrid.flow.declared.options import parse_source


@pytest.fixture
def tree(tmp_path):
    def make(*paths):
        for age, path in enumerate(paths):
            found = tmp_path / path
            found.parent.mkdir(parents=True, exist_ok=True)
            found.write_text("{}\n")
            os.utime(found, (1000 + age, 1000 + age))
        return tmp_path

    return make


def names(root, path, **options):
    source = parse_source(f"{root}/{path}", {"format": "json", **options}, "f", streaming=True)
    return [os.path.relpath(file.path, root) for file in list_files(source)]


def test_folders_patterns_and_what_is_hidden(tree):
    root = tree("b.json", "y=1/a.json", "y=1/_tmp.json", ".x/c.json", "y=2/d/e.json", "_log/f.json")
    assert names(root, "") == ["b.json", "y=1/a.json", "y=2/d/e.json"]
    assert names(root, "*") == names(root, "")
    assert names(root, "y=*") == ["y=1/a.json", "y=2/d/e.json"]
    assert names(root, "y={1,3}") == ["y=1/a.json"]
    assert names(root, "", recursiveFileLookup=False) == ["b.json", "y=1/a.json"]
    assert names(root, "y=1/a.json") == ["y=1/a.json"]
    assert names(root, "y=[89]") == []


def test_filters(tree):
    root = tree("a.json", "b.csv", "c.json")
    assert names(root, "", pathGlobFilter="*.json") == ["a.json", "c.json"]
    assert names(root, "", modifiedAfter="1970-01-01T00:16:40Z") == ["b.csv", "c.json"]
    assert names(root, "", modifiedBefore="1970-01-01T00:16:41Z") == ["a.json"]


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(NotFoundError, match="there is no folder"):
        names(tmp_path, "nowhere/*")
    assert base_folder("/a/b/*/c/d*") == "/a/b"


def test_micro_batches(tree):
    root = tree("a", "b", "c")
    source = parse_source(str(root), {"format": "json", "maxFilesPerTrigger": 2}, "f", streaming=True)
    assert len(next_files(source, list_files(source))) == 2
    small = parse_source(str(root), {"format": "json", "maxBytesPerTrigger": 1}, "f", streaming=True)
    assert len(next_files(small, list_files(small))) == 1, "one that is too large is taken alone"


def test_a_file_that_changes_while_it_is_read(tree):
    (file,) = list_files(parse_source(str(tree("a")), {"format": "json"}, "f", streaming=True))
    file.check_unchanged()
    with open(file.path, "a") as more:
        more.write("x")
    with pytest.raises(DataError, match="was changed while it was read"):
        file.check_unchanged()
    os.unlink(file.path)
    with pytest.raises(DataError, match="was removed"):
        file.check_unchanged()


def test_links_to_nothing_loops_and_a_folder_twice(tree):
    root = tree("day=1/a.json")
    (root / "gone.json").symlink_to(root / "nothing")
    (root / "day=1" / "loop=0").symlink_to(root)
    (root / "latest=1").symlink_to(root / "day=1")
    assert names(root, "") == ["day=1/a.json"]
