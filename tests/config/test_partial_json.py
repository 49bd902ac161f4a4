"""PARTIAL upsert and several comparison columns, as Pinot's table configs say them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.table_config import MergeType, Partial, Strategy, TableSpec, UpsertConfig
from hybrid.config.table_json import parse_table
from hybrid.errors import SpecError

DATA = Path(__file__).resolve().parents[2] / "data" / "orders_upsert"
PARTIAL = {"mode": "PARTIAL", "comparisonColumn": "ts"}


def parsed(upsert: dict[str, Any], change: Callable[[Any, Any, Any], Any] = lambda s, r, o: None) -> TableSpec:
    """The recipe's table with nulls, more columns and this upsertConfig; `change` as to schema, REALTIME, OFFLINE."""
    names = ("orders_schema.json", "orders_table.json", "orders_offline_table.json")
    schema, realtime, offline = (json.loads((DATA / name).read_text()) for name in names)
    schema["dimensionFieldSpecs"] += [
        {"name": "tags", "dataType": "STRING", "singleValueField": False},
        {"name": "raws", "dataType": "BYTES", "singleValueField": False},
        {"name": "gone", "dataType": "BOOLEAN"},
    ]
    schema["metricFieldSpecs"] = [*schema.get("metricFieldSpecs", []), *(
        {"name": name, "dataType": "LONG"} for name in ("v1", "v2", "views")
    )]  # fmt: skip
    for config in (realtime, offline):
        config["tableIndexConfig"]["nullHandlingEnabled"] = True
        config.pop("upsertConfig", None)
    realtime["upsertConfig"] = upsert
    change(schema, realtime, offline)
    return parse_table(schema, "s.json", [(realtime, "r.json"), (offline, "o.json")])


def test_strategies_by_column_and_for_all_others() -> None:
    given = {"views": "increment", "tags": "UNION", "customer_id": "IGNORE"}
    spec = parsed({**PARTIAL, "partialUpsertStrategies": given, "defaultPartialUpsertStrategy": "FORCE_OVERWRITE"})
    strategies = {"views": Strategy.INCREMENT, "tags": Strategy.UNION, "customer_id": Strategy.IGNORE}
    assert spec.upsert == UpsertConfig("ts", partial=Partial(strategies, Strategy.FORCE_OVERWRITE))
    assert spec.folds and not spec.picks_winners and spec.primary_key == ("order_id",) and not spec.warnings
    assert spec.upsert.strategy_of("views") is Strategy.INCREMENT
    assert spec.upsert.strategy_of("v1") is Strategy.FORCE_OVERWRITE
    assert spec.upsert.strategy_of("ts") is Strategy.OVERWRITE, "what is compared is what was reached"
    assert spec.move is not None and spec.move.merge_type is MergeType.CONCAT


def test_without_strategies_the_last_value_that_is_no_null_stands() -> None:
    upsert = parsed(PARTIAL).upsert
    assert upsert is not None and upsert.partial == Partial() and upsert.strategy_of("v1") is Strategy.OVERWRITE


@pytest.mark.parametrize("mode", ["FULL", "PARTIAL"])
def test_several_comparison_columns(mode: str) -> None:
    spec = parsed({"mode": mode, "comparisonColumns": ["v1", "v2", "v1"], "deleteRecordColumn": "gone"})
    assert spec.upsert is not None and spec.upsert.comparison_columns == ("v1", "v2") and spec.folds
    assert spec.upsert.delete_column == "gone"
    expected = Strategy.FORCE_OVERWRITE if mode == "FULL" else Strategy.OVERWRITE
    assert spec.upsert.strategy_of("v1") is spec.upsert.strategy_of("views") is expected


def _strategies(**given: str) -> dict[str, Any]:
    return {**PARTIAL, "partialUpsertStrategies": given}


def _task(config: dict[str, Any], name: str, **settings: Any) -> None:
    config.setdefault("task", {}).setdefault("taskTypeConfigsMap", {}).setdefault(name, {}).update(settings)


NO_NULLS: Any = lambda s, r, o: [one["tableIndexConfig"].pop("nullHandlingEnabled") for one in (r, o)]  # noqa: E731
SEVERAL = {"mode": "FULL", "comparisonColumns": ["v1", "v2"]}
PLACE = "r.json: upsertConfig.partialUpsertStrategies."


@pytest.mark.parametrize(
    ("upsert", "change", "message"),
    [
        (PARTIAL, NO_NULLS, "r.json: upsertConfig.mode: 'PARTIAL' needs nulls"),
        (_strategies(order_id="MAX"), None, PLACE + "order_id: 'order_id' is part of the primary key"),
        (_strategies(ts="MAX"), None, PLACE + "ts: 'ts' is a comparison column"),
        (_strategies(view="MAX"), None, PLACE + "view: 'view' is not a column of the schema 'orders'. Did you mean"),
        (_strategies(views="ADD"), None, PLACE + "views: 'ADD' is not known."),
        (_strategies(customer_id="APPEND"), None, "APPEND cannot bring the values of 'customer_id' together: it holds"),
        (_strategies(views="UNION"), None, PLACE + "views: UNION cannot"),
        (_strategies(raws="UNION"), None, PLACE + "raws: UNION cannot"),
        (_strategies(tags="INCREMENT"), None, "of 'tags' together: it holds several values"),
        (_strategies(order_status="INCREMENT"), None, "it is STRING and no number"),
        (_strategies(tags="MAX"), None, "of 'tags' together: it holds several values"),
        ({"mode": "PARTIAL", "comparisonColumn": "views", "partialUpsertStrategies": {"ts": "INCREMENT"}}, None,
         "it is a dateTime field"),
        ({**PARTIAL, "defaultPartialUpsertStrategy": "INCREMENT"}, None,
         "r.json: upsertConfig.defaultPartialUpsertStrategy: INCREMENT cannot"),
        ({**PARTIAL, "partialUpsertMergerClass": "a.B"}, None, "r.json: upsertConfig.partialUpsertMergerClass: cannot"),
        (SEVERAL, NO_NULLS, "r.json: upsertConfig.comparisonColumns: several need nulls"),
        ({**SEVERAL, "comparisonColumns": ["v1", "ts"]}, None, "'ts' is the time column, which every row has"),
        ({**SEVERAL, "comparisonColumns": ["order_id", "v1"]}, None, "'order_id' is part of the primary key"),
        ({**SEVERAL, "comparisonColumns": ["v1", "tags"]}, None, "'tags' is STRING and has no order"),
        (PARTIAL, lambda s, r, o: _task(r, "RealtimeToOfflineSegmentsTask", mergeType="dedup"),
         "RealtimeToOfflineSegmentsTask.mergeType: 'dedup' would leave out or change rows"),
        (SEVERAL, lambda s, r, o: _task(r, "RealtimeToOfflineSegmentsTask", roundBucketTimePeriod="1h"),
         "RealtimeToOfflineSegmentsTask.roundBucketTimePeriod: '1h' would leave out or change rows"),
        ({**SEVERAL, "deletedKeysTTL": 5}, None, "r.json: upsertConfig.deletedKeysTTL: is measured by one comparison"),
        (SEVERAL, lambda s, r, o: _task(o, "MergeRollupTask", **{
            "1day.bucketTimePeriod": "1d", "1day.bufferTimePeriod": "1d", "1day.mergeType": "dedup"}),
         "o.json: task.taskTypeConfigsMap.MergeRollupTask.1day.mergeType: 'dedup' would leave out or change rows"),
        (PARTIAL, lambda s, r, o: _task(o, "UpsertCompactionTask", invalidRecordsThresholdPercent="30"),
         "o.json: task.taskTypeConfigsMap.UpsertCompactionTask: cannot run here: no row is superseded"),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_an_error_at_its_place(upsert: dict[str, Any], change: Any, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        parsed(upsert, change or (lambda s, r, o: None))
    assert message in str(caught.value)


@pytest.mark.parametrize("upsert", [PARTIAL, SEVERAL])
def test_pushed_rows_do_not_come_in_the_place_of_the_streams_where_rows_are_folded(upsert: dict[str, Any]) -> None:
    """They would arrive at the push, and each push take data away."""

    def pushed(mode: str | None) -> Callable[[Any, Any, Any], None]:
        def change(_: Any, realtime: Any, offline: Any) -> None:
            realtime.pop("task")
            if mode is not None:
                offline["metadata"] = {"customConfigs": {"hybrid.boundary": mode}}

        return change

    for mode, source in ((None, "r.json"), ("pinot", "o.json")):
        with pytest.raises(SpecError) as caught:
            parsed(upsert, pushed(mode))
        assert f"{source}: metadata.customConfigs.hybrid.boundary: cannot be pinot where rows" in str(caught.value)
        assert '"hybrid.boundary": "exact"' in str(caught.value.hint)
    assert parsed(upsert, pushed("exact")).folds and parsed({"mode": "FULL"}, pushed("pinot")).picks_winners


def test_what_partial_upsert_does_not_heed_is_told() -> None:
    (warning,) = {*parsed({**PARTIAL, "deletedKeysTTL": 5}).warnings}
    assert "upsertConfig.deletedKeysTTL: has no effect" in warning
