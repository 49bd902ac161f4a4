"""docs/glossary.md explains each word of a heading or of `hybrid --help` that is not ordinary English.

A new word in a heading or a noun's help either gets an entry there, or, where everybody knows it, a place in ORDINARY.
"""

from __future__ import annotations

import re

import click

from hybrid.cli.main import hybrid
from tests.docs.pages import PAGES, ROOT, prose, tables

GLOSSARY = ROOT / "docs" / "glossary.md"
TERMS = {row[0].strip("*"): row[1:] for row in tables(GLOSSARY)[0].rows}
# Words that every reader of English, SQL or a command line knows; their plurals count too.
ORDINARY = """
a about above accept accepted access acknowledged across add added admin after again against all along also among an
and another answer answered any apache architecture are argument around arrive ask asked asking at atomic attack
automatic avro back backlog bad bare be become been before begin behind below benchmarks beside between beyond both
bound brings broker by can cannot case change changed changing check churn clear client clock close closed code cold
combine command committed compare compared condition connection container converted coordinates copy correct corrected
correcting correction cost could count cover crash create created csv data day debezium decided default deleted delta
demo dependencies details did differences disk document documentation does doing done down drop dropped duckdb during
each early else empty end engine erase error even event events every everything example existing exit expired export
failures false far fast fenced fetch few fields file find first fit flag folder follow followed for format found free
from full function generated get getting give glance global glossary good growth halves hand happened has have headers
here high history holds hour how http hybrid if in incrementally ingest ingesting inputs insert inspect instants into
is it jars java just jvm kafka keep keeping kept key kills kind lag large last late latency layout leaps left less
level limit line list live load loaded local long look lost low machine made make manage manual many may meanwhile
measure measured memory million minute missing mode month more most much name named need nested network new newest next
no not number of offline old older on once one only open operation option or orders other out output outside over own
packages page part path pause per pinot place plain play point position power prefix prepare print private problem
processes processor produce producing product prove public push put python queries query question range reach read
reading ready realtime reason records recreated reference refuse refused reload remark remote remove removed repair
replaced request reset response rest results resume right rounded rounding rule running safe same save saved
second secrets secured see serial serve session set settings setup several share short show side simple size slow small
some somebody sources space spark spec special sql stage start started state statement status step stop stopped stretch
take ten tenth terminal text that the then these they thing this those through throughput to together toml true
truncated tutorial two type under undo until up update use used user using value verify version via visible warm
warning was watch way week went were what when where whether which while who whole whom why widen with without word
works write written wrong year yet your
address cluster continue continues decide directory guarantees erased restore restoring verifying
asyncio call creating notebook alert dashboard
bash complete dot fish interactive noun script verb zsh
checked connect cores dbeaver exactly figure goes grafana guide happens hardening hint install know loss metabase night
operate postgresql program my hold says service sizing superset supervisor tested tried try unit upgrade wheel yarn you
"""


def words(text: str) -> set[str]:
    """The words of a text in lower case, without quoted code and what stands in brackets."""
    return set(re.findall(r"[a-z]+", re.sub(r"`[^`]*`|\([^)]*\)|'s\b", " ", text.lower())))


KNOWN = {word for term in TERMS for word in words(term)} | set(ORDINARY.split())


def unknown(text: str) -> set[str]:
    """The words of a text that are neither ordinary nor of a term of the glossary."""
    return {word for word in words(text) if not {word, word.removesuffix("s"), word.removesuffix("es")} & KNOWN}


def headings() -> set[str]:
    """The headings of all pages but those of decisions and changes, which speak of the code."""
    pages = [page for page in PAGES if page.parent.name != "adr" and page.name != "CHANGELOG.md"]
    return {line.lstrip("# ") for page in pages for line in prose(page) if line.startswith("#")}


def nouns() -> list[click.Command]:
    """The commands and groups that `hybrid --help` lists."""
    found = (hybrid.get_command(click.Context(hybrid), name) for name in hybrid.list_commands(click.Context(hybrid)))
    return [command for command in found if command is not None]


def test_every_term_of_a_heading_is_in_the_glossary() -> None:
    assert {heading: found for heading in headings() if (found := unknown(heading))} == {}


def test_every_term_of_a_help_is_in_the_glossary() -> None:
    helps = [f"{command.name} {command.get_short_help_str(200)}" for command in nouns()]
    assert {text: found for text in helps if (found := unknown(text))} == {}


def test_terms_are_in_order_and_explained() -> None:
    assert list(TERMS) == sorted(TERMS, key=str.lower)
    assert [term for term, cells in TERMS.items() if not all(cells)] == []


def test_a_meaning_is_one_sentence() -> None:
    assert [term for term, (meaning, _) in TERMS.items() if len(meaning.split()) > 25 or meaning.count(". ")] == []


def test_ordinary_words_are_no_terms() -> None:
    assert set(ORDINARY.split()) & set(TERMS) == set()
