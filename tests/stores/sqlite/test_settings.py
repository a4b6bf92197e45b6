"""The history of the settings is numbered without gaps, and its length is bounded."""

from __future__ import annotations

import pytest

import trivet
from trivet.errors import NotFoundError, StoreError
from trivet.stores.sqlite import settings
from trivet.stores.sqlite.collection import SqliteCollection


def test_what_is_older_than_the_newest_so_many_goes(
    engine: trivet.Engine, collection: SqliteCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "KEPT", 3)
    for k in range(1, 7):
        engine.update_settings(k=k)
    assert [(item.number, item.profile.k) for item in engine.settings_history()] == [(6, 6), (5, 5), (4, 4)]
    with pytest.raises(NotFoundError, match="change 0 is not kept"):
        engine.revert_settings(to=0)
    assert engine.revert_settings(to=4).k == 4


def test_a_damaged_time_is_told(engine: trivet.Engine, collection: SqliteCollection) -> None:
    engine.update_settings(k=3)
    with collection.rows.changing() as connection:
        connection.execute("UPDATE settings_history SET at = 'noon'")
    with pytest.raises(StoreError, match="history of the settings is damaged"):
        engine.settings_history()
