"""The functions that a row expression may call: functions of Pinot that have a Spark equivalent.

They compute from their arguments only. Names are canonical (`dialect.canonical`). A test runs each of them on DuckDB
and on Spark.
"""

from __future__ import annotations

# Functions whose value depends on the time of the call.
CLOCK = frozenset(("now", "ago"))
# Functions that are conditions.
TESTS = frozenset(("isnull", "isnotnull", "startswith", "endswith", "contains", "regexplike"))
# Functions that return one of their arguments, so that they may be conditions.
PASSING = frozenset(("coalesce", "ifnull", "nullif", "if", "least", "greatest"))
_NAMES = """
    add/2 plus/2 sub/2 minus/2 mult/2 times/2 div/2-3 divide/2-3 mod/2
    abs/1 ceil/1 ceiling/1 floor/1 round/1-2 rounddecimal/1-2 truncate/1-2 sqrt/1 exp/1 ln/1 log/1 log2/1 log10/1 pow/2
    power/2 sign/1
    isnull/1 isnotnull/1 coalesce/1-99 ifnull/2 nullif/2 if/3 least/2-99 greatest/2-99
    startswith/2 endswith/2 contains/2 regexplike/2-3 regexpreplace/3 regexpextract/2-3
    lower/1 upper/1 length/1 reverse/1 concat/2-3 concatws/2-99 substr/2-3 leftsubstr/2 rightsubstr/2 ltrim/1 rtrim/1
    replace/3 remove/2 strpos/2 splitpart/3 lpad/3 rpad/3 md5/1 sha256/1
    jsonextractscalar/3-4 jsonpathstring/2-3 jsonpathlong/2-3 jsonpathdouble/2-3
    arraylength/1 arraymin/1 arraymax/1
    now/0 ago/1 datetrunc/2-5 timeconvert/3 totimestamp/1 fromtimestamp/1
    dateadd/3 timestampadd/3 datediff/3 timestampdiff/3
    year/1-2 yearofweek/1-2 yow/1-2 quarter/1-2 month/1-2 monthofyear/1-2 week/1-2 weekofyear/1-2 day/1-2 dayofmonth/1-2
    dayofweek/1-2 dow/1-2 dayofyear/1-2 doy/1-2 hour/1-2 minute/1-2 second/1-2 millisecond/1
    toepochseconds/1 toepochminutes/1 toepochhours/1 toepochdays/1
    fromepochseconds/1 fromepochminutes/1 fromepochhours/1 fromepochdays/1
    toepochsecondsrounded/2 toepochminutesrounded/2 toepochhoursrounded/2 toepochdaysrounded/2
    toepochsecondsbucket/2 toepochminutesbucket/2 toepochhoursbucket/2 toepochdaysbucket/2
    fromepochsecondsbucket/2 fromepochminutesbucket/2 fromepochhoursbucket/2 fromepochdaysbucket/2
"""


def _counts(text: str) -> tuple[int, int]:
    fewest, _, most = text.partition("-")
    return int(fewest), int(most or fewest)


# Name -> the minimum and maximum number of arguments.
FUNCTIONS = {name: _counts(counts) for name, _, counts in (entry.partition("/") for entry in _NAMES.split())}
