"""The security of a stream's connections to Kafka: one value, converted to the properties of each client.

Pinot's configs use the names of the Java client, connectors those of librdkafka. Spark connects with the Java client,
the server's tail with librdkafka and everything else with kafka-python. No repr contains a password, so that no
message shows it by accident.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hybrid.schema.document import Section
from hybrid.schema.references import check_references, resolve
from hybrid.schema.secrets import HIDDEN

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MODULES = {"PLAIN": "plain.PlainLoginModule", "SCRAM": "scram.ScramLoginModule"}
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
# JAAS as Kafka's client reads it: values in either quote, or bare. An escaped letter or digit is refused, because in
# Java some of these are other characters.
_VALUE = r"""(?:"(?:[^"\\\r\n]|\\[^\w\r\n])*"|'(?:[^'\\\r\n]|\\[^\w\r\n])*'|[^\s;"'=\\]+)"""
_OPTION = rf"\s+(username|password)\s*=\s*({_VALUE})"
_LOGIN = re.compile(
    rf"\s*[\w.]*\b(?:{'|'.join(map(re.escape, _MODULES.values()))})\s+(?i:required|requisite|sufficient|optional)"
    rf"{_OPTION}{_OPTION}\s*;?\s*"
)
_IS_SECURITY = re.compile(r"(?:security|sasl|ssl|enable\.ssl)\..+")
_JAVA_PREFIXES = ("stream.kafka.consumer.prop.", "stream.kafka.", "")
_JAVA = {
    "security.protocol", "sasl.mechanism", "sasl.jaas.config", "ssl.truststore.location", "ssl.truststore.type",
    "ssl.keystore.location", "ssl.keystore.type", "ssl.key.password", "ssl.endpoint.identification.algorithm",
}  # fmt: skip
_LIBRDKAFKA = {
    "security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password", "ssl.ca.location",
    "ssl.certificate.location", "ssl.key.location", "ssl.key.password", "ssl.endpoint.identification.algorithm",
}  # fmt: skip


@dataclass(frozen=True)
class KafkaSecurity:
    """How connections are secured. `ca_file`, `certificate_file` and `key_file` are paths of PEM files.

    Without `ca_file` the machine's own CAs are used. User and passwords may be references, which are resolved for
    clients: StreamError for a reference to a missing value.
    """

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool = True

    @property
    def is_plain(self) -> bool:
        """Whether connections are neither encrypted nor authenticated."""
        return self.protocol == "PLAINTEXT"

    @property
    def _has_tls(self) -> bool:
        return self.protocol in {"SSL", "SASL_SSL"}

    @property
    def _login_name(self) -> str | None:
        return _resolved(self.username, "The user of sasl.jaas.config")

    @property
    def _login_password(self) -> str | None:
        return _resolved(self.password, "The password of sasl.jaas.config, or sasl.password,")

    @property
    def _key_password(self) -> str | None:
        return _resolved(self.key_password, "ssl.key.password")

    def for_java(self) -> dict[str, str]:
        """Properties of the Java client. Keys and certificates are read from their files."""
        if self.is_plain:
            return {}
        properties = {"security.protocol": self.protocol}
        if self.mechanism is not None:
            module = f"org.apache.kafka.common.security.{_MODULES[self.mechanism.partition('-')[0]]}"
            login = f"username={_quoted(self._login_name)} password={_quoted(self._login_password)}"
            properties |= {"sasl.mechanism": self.mechanism, "sasl.jaas.config": f"{module} required {login};"}
        if not self._has_tls:
            return properties
        if self.ca_file is not None:
            properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.ca_file}
        if self.certificate_file is not None:
            key = Path(self.key_file or self.certificate_file).read_text(encoding="ascii")
            chain = Path(self.certificate_file).read_text(encoding="ascii")
            properties |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
            properties |= {"ssl.key.password": self._key_password} if self._key_password is not None else {}
        return properties | ({} if self.check_hostname else {"ssl.endpoint.identification.algorithm": ""})

    def for_librdkafka(self) -> dict[str, str]:
        """Properties of librdkafka."""
        if self.is_plain:
            return {}
        tls = {
            "ssl.ca.location": self.ca_file,
            "ssl.certificate.location": self.certificate_file,
            "ssl.key.location": self.key_file or self.certificate_file,
            "ssl.key.password": self._key_password,
            "ssl.endpoint.identification.algorithm": "https" if self.check_hostname else "none",
        }
        properties = {
            "security.protocol": self.protocol,
            "sasl.mechanism": self.mechanism,
            "sasl.username": self._login_name,
            "sasl.password": self._login_password,
            **(tls if self._has_tls else {}),
        }
        return {key: value for key, value in properties.items() if value is not None}

    def for_python(self) -> dict[str, object]:
        """Arguments of kafka-python's clients."""
        if self.is_plain:
            return {}
        tls: dict[str, object] = {
            "ssl_cafile": self.ca_file,
            "ssl_certfile": self.certificate_file,
            "ssl_keyfile": self.key_file or self.certificate_file,
            "ssl_password": self._key_password,
            "ssl_check_hostname": self.check_hostname,
        }
        return {
            "security_protocol": self.protocol,
            "sasl_mechanism": self.mechanism,
            "sasl_plain_username": self._login_name,
            "sasl_plain_password": self._login_password,
            **(tls if self._has_tls else {}),
        }


PLAINTEXT = KafkaSecurity()
_PEM_HINT = (
    "Java's key stores are not read: convert them to PEM files (openssl pkcs12 -in STORE.p12 -out FILE.pem -nodes) and "
    "give ssl.truststore.type=PEM, ssl.truststore.location=FILE.pem."
)


def of_java(section: Section) -> KafkaSecurity:
    """The security in a stream's configs, in the Java client's names. SpecError, without a secret in it."""
    by_name = {}
    for key in section.doc:
        name = _java_name(str(key))
        if name is not None and section.doc[key] not in (None, ""):
            if name not in _JAVA:
                section.fail(key, f"cannot be honoured. There are: {', '.join(sorted(_JAVA))}.", hint=_PEM_HINT)
            by_name[name] = (key, _text(section, key))
    for store in ("truststore", "keystore"):
        place = by_name.get(f"ssl.{store}.location")
        kind = by_name.get(f"ssl.{store}.type", ("", "JKS"))[1]
        if place is not None and kind.upper() != "PEM":
            section.fail(place[0], f"a store of type {kind[:20]} cannot be read: it has to be PEM.", hint=_PEM_HINT)
    words = {name: value for name, (_, value) in by_name.items()}
    username, password = _login(section, by_name.get("sasl.jaas.config"))
    certificate = words.get("ssl.keystore.location")
    keys = {name: key for name, (key, _) in by_name.items()}
    return _checked(
        section,
        keys,
        KafkaSecurity(
            words.get("security.protocol", "PLAINTEXT").upper(),
            words.get("sasl.mechanism"),
            username,
            password,
            words.get("ssl.truststore.location"),
            certificate,
            None,
            words.get("ssl.key.password"),
            not _is_blank(section, "ssl.endpoint.identification.algorithm"),
        ),
    )


def of_librdkafka(section: Section, properties: Mapping[str, str]) -> KafkaSecurity:
    """The security in a connector's `properties`, in librdkafka's names. SpecError, without a secret in it."""
    words = {key: value for key, value in properties.items() if _IS_SECURITY.fullmatch(key)}
    for key in words:
        _text(section, key)
        if key not in _LIBRDKAFKA:
            section.fail(key, f"cannot be honoured. There are: {', '.join(sorted(_LIBRDKAFKA))}.")
    return _checked(
        section,
        {key: key for key in words},
        KafkaSecurity(
            words.get("security.protocol", "PLAINTEXT").upper(),
            words.get("sasl.mechanism") or words.get("sasl.mechanisms"),
            words.get("sasl.username"),
            words.get("sasl.password"),
            words.get("ssl.ca.location"),
            words.get("ssl.certificate.location"),
            words.get("ssl.key.location"),
            words.get("ssl.key.password"),
            words.get("ssl.endpoint.identification.algorithm", "https") == "https",
        ),
    )


def java_keys(section: Section) -> set[str]:
    """The keys of a stream's configs that belong to security."""
    return {str(key) for key in section.doc if _java_name(str(key)) is not None}


def _java_name(key: str) -> str | None:
    """The Java client's name of a security key, without Pinot's prefix; None for any other key."""
    for prefix in _JAVA_PREFIXES:
        if key.startswith(prefix) and _IS_SECURITY.fullmatch(key.removeprefix(prefix)):
            return key.removeprefix(prefix)
    return None


def _is_blank(section: Section, name: str) -> bool:
    return any(_java_name(str(key)) == name and value == "" for key, value in section.doc.items())


def _text(section: Section, key: str) -> str:
    value = section.doc[key]
    if not isinstance(value, (str, int, float, bool)):
        section.fail(key, "is not a text.")
    if value == HIDDEN:
        section.fail(key, "is hidden where it was shown: give the secret itself.")
    check_references(section, key, str(value))
    return str(value)


def _login(section: Section, config: tuple[str, str] | None) -> tuple[str | None, str | None]:
    """The user and the password of a JAAS config, which may contain nothing else."""
    if config is None:
        return None, None
    key, text = config
    login = _LOGIN.fullmatch(text)
    if login is None or login[1] == login[3]:
        section.fail(
            key,
            "cannot be read: a login module with a username, a password and nothing else is expected.",
            hint='org.apache.kafka.common.security.scram.ScramLoginModule required username="..." password="...";',
        )
    credentials = {login[1]: _unquoted(login[2]), login[3]: _unquoted(login[4])}
    return credentials["username"], credentials["password"]


def _checked(section: Section, keys: Mapping[str, str], found: KafkaSecurity) -> KafkaSecurity:
    """`found`, after its parts are checked against each other; `keys` are the keys as written, by name."""
    protocol_key = keys.get("security.protocol", "security.protocol")
    if found.protocol not in _PROTOCOLS:
        section.fail(protocol_key, f"'{found.protocol[:40]}' is not known. There are: {', '.join(_PROTOCOLS)}.")
    is_sasl = found.protocol.startswith("SASL")
    if is_sasl and found.mechanism not in _MECHANISMS:
        key = next((keys[name] for name in ("sasl.mechanism", "sasl.mechanisms") if name in keys), "sasl.mechanism")
        section.fail(key, f"'{str(found.mechanism)[:40]}' is not built yet. There are: {', '.join(_MECHANISMS)}.")
    if is_sasl and (not found.username or found.password is None):
        section.fail(protocol_key, f"{found.protocol} needs a user and a password: sasl.jaas.config, or sasl.username.")
    beside = [key for name, key in keys.items() if name.startswith("sasl.") and not is_sasl]
    beside += [key for name, key in keys.items() if name.startswith("ssl.") and not found._has_tls]
    if beside:
        section.fail(beside[0], f"says nothing to security.protocol {found.protocol}. Change one of them.")
    return found


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value[0] in "\"'" else value


def _resolved(text: str | None, place: str) -> str | None:
    return None if text is None else resolve(text, place)


def _quoted(text: str | None) -> str:
    return '"' + (text or "").replace("\\", "\\\\").replace('"', '\\"') + '"'
