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
_ASK_AGAIN_S, _RETRY_S = 600.0, 60.0
# What a process was told, and until when it holds: by brokers and topics.
_TOLD: dict[tuple[str, tuple[str, ...]], tuple[bool, float]] = {}


def may_have_remote_storage(stream: StreamConfig) -> bool:
    """Whether some topic of a stream has remote storage, or its brokers do not tell. Asked again after a while."""
    key, now = (stream.brokers, tuple(stream.topics)), time.monotonic()
    told, until = _TOLD.get(key, (True, now))
    if until <= now:
        answer = _asked(stream)
        told = answer is not False
        _TOLD[key] = told, now + (_RETRY_S if answer is None else _ASK_AGAIN_S)
    return told


def _asked(stream: StreamConfig) -> bool | None:
    """Whether some topic has remote storage; None where brokers do not tell."""
    from kafka.errors import KafkaError

    def look(admin: KafkaAdminClient) -> bool | None:
        from kafka.admin import ConfigResource, ConfigResourceType

        names = {_SETTING: None, _ALWAYS: None}
        wanted = [ConfigResource(ConfigResourceType.TOPIC, topic, names) for topic in stream.topics]
        found = admin.describe_configs(wanted, config_filter="all").get("topic", {})
        settings = [found.get(topic, {}) for topic in stream.topics]
        if not all(_ALWAYS in values for values in settings):
            return None
        return any(str(values.get(_SETTING, {}).get("value", "false")).lower() == "true" for values in settings)

    try:
        return ask_admin(stream.brokers, WORK_TIMEOUT_MS, look, stream.security)
    except (KafkaError, OSError):  # a user may read topics and not their settings
        return None
