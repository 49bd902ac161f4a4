"""Reads `<home>/hybrid.toml`: settings at its top level, and the tables `[spark]` and `[pinning]`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybrid.config.setting_keys import BY_NAME, Value
from hybrid.errors import SpecError, suggestion

# Tables whose keys are settings, and whether other keys are passed through to Spark.
_SPARK, _PINNING = "spark", "pinning"
_FOLDERS = "input_folders"


@dataclass(frozen=True)
class SettingsFile:
    """The settings in a file by name, its keys for Spark itself, and a warning for each unknown key."""

    values: Mapping[str, Value] = field(default_factory=dict)
    spark: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def read_settings_file(path: Path) -> SettingsFile:
    """The settings of a home's file; none where there is no file. SpecError when it cannot be read."""
    try:
        parsed = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return SettingsFile()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} is not valid TOML: {error}") from error
    except OSError as error:
        raise SpecError(f"{path} cannot be read: {error.strerror}. Is {path.parent} a folder?") from error
    spark, pinning = _table(path, parsed, _SPARK), _table(path, parsed, _PINNING)
    _refuse_misplaced(path, {_SPARK: spark, _PINNING: pinning})
    own = {f"{_SPARK}.{name}": value for name, value in spark.items() if f"{_SPARK}.{name}" in BY_NAME}
    passed = _flat({name: value for name, value in spark.items() if f"{_SPARK}.{name}" not in BY_NAME})
    pinned = {f"{_PINNING}.{name}": value for name, value in pinning.items()}
    warnings = tuple(
        f"{path}: '{name}' is not a setting and is not used.{suggestion(name, BY_NAME)}"
        for name in (*parsed, *pinned)
        if name not in BY_NAME
    )
    top = {name: value for name, value in parsed.items() if name in BY_NAME}
    values = {name: _joined(path, name, value) for name, value in {**top, **own, **pinned}.items()}
    return SettingsFile(values, passed, warnings)


def _table(path: Path, parsed: dict[str, Any], name: str) -> dict[str, Any]:
    table = parsed.pop(name, {})
    if not isinstance(table, dict):
        raise SpecError.at(str(path), name, f"must be a table: [{name}]")
    return table


def _refuse_misplaced(path: Path, tables: Mapping[str, Mapping[str, object]]) -> None:
    """SpecError for a top-level setting below `[spark]` or `[pinning]`, where it would silently be something else.

    A table is no setting: `kafka.consumer.cache.capacity` is Spark's own.
    """
    for table, values in tables.items():
        for name, value in values.items():
            if name in BY_NAME and f"{table}.{name}" not in BY_NAME and not isinstance(value, dict):
                raise SpecError.at(
                    str(path),
                    f"[{table}] {name}",
                    f"is a setting of the top level, and does not count below [{table}].",
                    hint=f"Move the line with {name} above the first [...] of the file.",
                )


def _joined(path: Path, name: str, value: object) -> Value:
    """A value as environment variables write it: a list joined by commas, folders and lists of lists otherwise."""
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        separator = os.pathsep if name == _FOLDERS else ","
        if any(separator in item for item in value):
            raise SpecError.at(str(path), name, f"has a text with '{separator}': write each by itself")
        return separator.join(value)
    if isinstance(value, list) and all(isinstance(item, list) for item in value):
        groups = [_joined(path, name, item) for item in value]
        return ";".join(str(group) for group in groups)
    raise SpecError.at(str(path), name, "must be a text, or a list of texts", hint="See docs/reference/settings.md.")


def _flat(table: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """Join nested tables to dotted keys: TOML reads an unquoted `spark.sql.x = 1` as nested tables."""
    flat: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            full = f"{prefix}{name}" if f"{prefix}{name}".startswith("spark.") else f"spark.{prefix}{name}"
            flat[full] = str(value).lower() if isinstance(value, bool) else str(value)
    return flat
