"""An index is opened once, when it is first used, and again after a reset."""

from __future__ import annotations

from pathlib import Path

from trivet.stores.sqlite.opened_index import OpenedIndex


class Index:
    """An index that counts how often it was discarded."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.discarded = folder, 0

    def discard(self) -> None:
        self.discarded += 1


def test_it_is_opened_once(tmp_path: Path) -> None:
    opened = OpenedIndex(tmp_path, Index)
    assert opened.index is None
    index = opened.open()
    assert opened.open() is index is opened.index and index.folder == tmp_path


def test_only_an_index_on_disk_is_opened_before_it_is_used(tmp_path: Path) -> None:
    opened = OpenedIndex(tmp_path / "words", Index)
    assert opened.stored() is None and opened.index is None
    (tmp_path / "words").mkdir()
    assert opened.stored() is opened.index is not None


def test_a_reset_keeps_the_files_and_a_discard_deletes_them(tmp_path: Path) -> None:
    opened = OpenedIndex(tmp_path, Index)
    first = opened.open()
    opened.reset()
    second = opened.open()
    assert second is not first and first.discarded == 0
    opened.discard()
    assert opened.index is None and second.discarded == 1
    opened.discard()
    assert second.discarded == 1
