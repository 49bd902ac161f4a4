"""Whether brokers keep old messages of topics elsewhere (tiered storage)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hybrid.config.table_config import StreamConfig
from hybrid.kafka.admin_pool import ask_admin
from hybrid.kafka.clients import WORK_TIMEOUT_MS

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

# The second one is a setting of every topic. Without it, the client was refused an answer, of which it says nothing.
_SETTING, _ALWAYS = "remote.storage.enable", "cleanup.policy"
_ASK_AGAIN_S = 600.0
# What a process was told, and when: by brokers and topics.
_TOLD: dict[tuple[str, tuple[str, ...]], tuple[bool, float]] = {}


def may_have_remote_storage(stream: StreamConfig) -> bool:
    """Whether some topic of a stream has remote storage, or its brokers do not tell. Asked again after ten minutes."""
    key, now = (stream.brokers, tuple(stream.topics)), time.monotonic()
    told = _TOLD.get(key)
    if told is None or now - told[1] > _ASK_AGAIN_S:
        told = _TOLD[key] = (_asked(stream), now)
    return told[0]


def _asked(stream: StreamConfig) -> bool:
    from kafka.errors import KafkaError

    def look(admin: KafkaAdminClient) -> bool:
        from kafka.admin import ConfigResource, ConfigResourceType

        wanted = [
            ConfigResource(ConfigResourceType.TOPIC, topic, {_SETTING: None, _ALWAYS: None}) for topic in stream.topics
        ]
        found = admin.describe_configs(wanted, config_filter="all")
        settings = [values for topics in found.values() for values in topics.values()]
        return any(
            _ALWAYS not in values or str(values.get(_SETTING, {}).get("value", "false")).lower() == "true"
            for values in settings
        )

    try:
        return ask_admin(stream.brokers, WORK_TIMEOUT_MS, look, stream.security)
    except (KafkaError, OSError):  # a user may read topics and not their settings
        return True
