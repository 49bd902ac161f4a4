"""How connections are secured: read in Java's words and librdkafka's, said in those of each client, and never shown."""

import pytest

from hybrid.config.kafka_security import KafkaSecurity, java_keys, of_java, of_librdkafka
from hybrid.errors import SpecError
from hybrid.schema.document import Section
from hybrid.schema.secrets import HIDDEN, without_secrets

SECRET = 'pa"ss\\word;'
JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="ada" password="pa\\"ss\\\\word;";'
JAVA = {
    "security.protocol": "SASL_SSL", "stream.kafka.consumer.prop.sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": JAAS, "ssl.truststore.location": "/ca.pem", "ssl.truststore.type": "PEM",
}  # fmt: skip
LIBRDKAFKA = {
    "security.protocol": "sasl_ssl", "sasl.mechanisms": "SCRAM-SHA-256", "sasl.username": "ada",
    "sasl.password": SECRET, "ssl.ca.location": "/ca.pem", "client.id": "c",
}  # fmt: skip
EXPECTED = KafkaSecurity("SASL_SSL", "SCRAM-SHA-256", "ada", SECRET, "/ca.pem")


def java(**changes):
    return of_java(Section({"streamType": "kafka", **JAVA, **changes}, "r.json", "streamConfigs"))


def librdkafka(**changes):
    doc = {**LIBRDKAFKA, **changes}
    return of_librdkafka(Section(doc, "r.json", "config"), doc)


def test_both_spellings_say_the_same():
    assert java() == librdkafka() == EXPECTED
    assert of_java(Section({"streamType": "kafka"}, "r.json")).is_plain
    assert java_keys(Section(dict(JAVA), "r.json")) == set(JAVA)


MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@pytest.mark.parametrize(
    ("options", "login"),
    [
        ("username='ada' password='se;cret';", ("ada", "se;cret")),
        ("password='a\"b' username=\"it's\";", ("it's", 'a"b')),
        ("username = ada\n  password = s3-cret_", ("ada", "s3-cret_")),
        (r"""username="a\\b" password='it\'s';""", ("a\\b", "it's")),
        ('username="x password=y" password="" ;', ("x password=y", "")),
        ('username="é" password="${VAR}/+=";', ("é", "${VAR}/+=")),
    ],
)
def test_logins_in_jaas(options, login):
    found = java(**{"sasl.jaas.config": f"{MODULE} {options}"})
    assert (found.username, found.password) == login


@pytest.mark.parametrize(
    "options",
    [
        'username="ada" password="secret" user_alice="x password=y";',
        'username="ada" password="secret" tokenauth="true";',
        'username="ada" password="secret" password="secret";',
        'password="secret" password="secret";',
        'username="ada" password="secret"; username="bob";',
        'username="ada" password="secret',
        "username='ada' password='secret\";",
        'username="ada"password="secret";',
        'username="ada" password=sec=ret;',
        'username="ada" password="sec\nret";',
        'username="ada" password="sec\\nret";',
        'username="ada" xpassword="secret";',
        'username="ada";',
        'username="ada" password=;',
    ],
)
def test_a_login_that_java_would_read_otherwise_is_refused(options):
    with pytest.raises(SpecError, match=r"sasl.jaas.config: cannot be read: a login module with a username") as caught:
        java(**{"sasl.jaas.config": f"{MODULE} {options}"})
    assert "secret" not in f"{caught.value} {caught.value.hint}"


def test_each_client_is_told_in_its_words():
    told = EXPECTED.for_java()
    assert told["sasl.jaas.config"] == JAAS and told["ssl.truststore.type"] == "PEM"
    assert "ssl.endpoint.identification.algorithm" not in told, "hosts are checked by default"
    assert EXPECTED.for_librdkafka() == {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "ada",
        "sasl.password": SECRET, "ssl.ca.location": "/ca.pem", "ssl.endpoint.identification.algorithm": "https",
    }  # fmt: skip
    assert EXPECTED.for_python()["sasl_plain_password"] == SECRET
    plain = KafkaSecurity()
    assert (plain.for_java(), plain.for_librdkafka(), plain.for_python()) == ({}, {}, {})


def test_certificates_of_clients(tmp_path):
    for name in ("chain", "key"):
        (tmp_path / name).write_text(f"-- {name} --")
    made = KafkaSecurity(
        "SSL", certificate_file=str(tmp_path / "chain"), key_file=str(tmp_path / "key"), check_hostname=False
    )
    told = made.for_java()
    assert (told["ssl.keystore.certificate.chain"], told["ssl.keystore.key"]) == ("-- chain --", "-- key --")
    assert told["ssl.endpoint.identification.algorithm"] == ""
    assert made.for_librdkafka()["ssl.endpoint.identification.algorithm"] == "none"
    assert "sasl.username" not in made.for_librdkafka()


@pytest.mark.parametrize(
    ("read", "changes", "words"),
    [
        (java, {"security.protocol": "TLS"}, "security.protocol: 'TLS' is not known"),
        (java, {"stream.kafka.consumer.prop.sasl.mechanism": "GSSAPI"}, "'GSSAPI' is not built yet"),
        (
            java,
            {"sasl.jaas.config": f"com.example.Module required password={SECRET}"},
            "sasl.jaas.config: cannot be read",
        ),
        (java, {"ssl.truststore.type": "JKS"}, "a store of type JKS cannot be read: it has to be PEM"),
        (java, {"ssl.truststore.password": SECRET}, "ssl.truststore.password: cannot be honoured"),
        (java, {"security.protocol": "PLAINTEXT"}, "says nothing to security.protocol PLAINTEXT"),
        (java, {"sasl.jaas.config": None}, "SASL_SSL needs a user and a password"),
        (java, {"sasl.jaas.config": HIDDEN}, "is hidden where it was shown"),
        (librdkafka, {"sasl.password": HIDDEN}, "is hidden where it was shown"),
        (librdkafka, {"sasl.mechanisms": "OAUTHBEARER"}, "'OAUTHBEARER' is not built yet"),
        (librdkafka, {"ssl.keystore.password": SECRET}, "ssl.keystore.password: cannot be honoured"),
    ],
)
def test_what_is_wrong_is_named_without_the_secret(read, changes, words):
    with pytest.raises(SpecError) as caught:
        read(**changes)
    assert words in str(caught.value)
    assert SECRET not in f"{caught.value} {caught.value.hint}"


def test_secrets_are_not_shown():
    assert SECRET not in repr(EXPECTED)
    document = {"a": [{"config": dict(LIBRDKAFKA)}], "streamConfigs": dict(JAVA), "ssl.key.password": None}
    shown = without_secrets(document)
    assert SECRET not in str(shown) and "pa\\" not in str(shown) and str(shown).count(HIDDEN) == 2
    assert shown["streamConfigs"]["ssl.truststore.location"] == "/ca.pem" and shown["ssl.key.password"] is None
