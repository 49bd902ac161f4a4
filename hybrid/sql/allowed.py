"""The allow-list of DuckDB functions for statements: functions that compute only from their arguments.

The list names what is allowed, so a function of a later DuckDB is refused until somebody has reviewed it. None of these
reads files, settings, sequences, other tables or the network, runs SQL, or waits. None makes a value of unlimited
length: sql.texts limits padding and repetition, sql.sizes nesting and multiplication.
"""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


AGGREGATES = word_set(
    """
    any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null arg_min
    arg_min_null argmax argmin array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count count_if
    count_star countif covar_pop covar_samp entropy favg first fsum geomean geometric_mean group_concat
    histogram kahan_sum kurtosis kurtosis_pop last list listagg mad max max_by mean median min min_by mode
    product quantile quantile_cont quantile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy sem skewness stddev stddev_pop stddev_samp string_agg sum
    sum_no_overflow sumkahan var_pop var_samp variance wavg weighted_avg json_group_array json_group_object
    """
)

WINDOWS = word_set(
    """
    row_number rank rank_dense dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
    """
)

_SCALARS = word_set(
    """
    abs acos acosh add age array_append array_cat array_concat array_contains array_distinct array_extract
    array_filter array_has array_has_all array_has_any array_indexof array_intersect array_length array_position
    array_prepend array_reverse array_reverse_sort array_slice array_sort array_to_string array_transform
    array_unique array_value ascii asin asinh atan atan2 atanh bar base64 bin bit_count bit_length cardinality
    cbrt ceil ceiling century char_length character_length chr coalesce concat concat_ws contains cos cosh cot
    damerau_levenshtein date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day
    dayname dayofmonth dayofweek dayofyear decade decode degrees divide editdist3 element_at encode ends_with
    epoch epoch_ms epoch_ns epoch_us era even exp factorial fdiv flatten floor fmod format format_bytes
    from_base64 from_binary from_hex gamma gcd greatest greatest_common_divisor grouping grouping_id hamming
    hash hex hour if ifnull instr isfinite isinf isnan isodow isoyear jaccard jaro_similarity
    jaro_winkler_similarity json json_array json_array_length json_contains json_exists json_extract
    json_extract_path json_extract_path_text json_extract_string json_keys json_merge_patch json_object
    json_pretty json_quote json_structure json_type json_valid json_value julian last_day lcase lcm least
    least_common_multiple left left_grapheme len length length_grapheme levenshtein lgamma list_aggr
    list_aggregate list_any_value list_append list_apply list_avg list_cat list_concat list_contains list_count
    list_distinct list_element list_extract list_filter list_first list_has list_has_all list_has_any
    list_indexof list_intersect list_last list_max list_median list_min list_pack list_position list_prepend
    list_product list_reverse list_reverse_sort list_select list_slice list_sort list_string_agg list_sum
    list_transform list_unique list_value list_where list_zip ln log log10 log2 lower lpad ltrim make_date
    make_time make_timestamp make_timestamp_ms make_timestamp_ns map map_concat map_contains map_entries
    map_extract map_extract_value map_from_entries map_keys map_values md5 microsecond millennium millisecond
    minute mismatches mod month monthname multiply nanosecond nfc_normalize nullif octet_length ord pi position
    pow power prefix printf quarter radians regexp_escape regexp_extract regexp_extract_all regexp_full_match
    regexp_matches regexp_replace regexp_split_to_array repeat replace reverse right right_grapheme round round_even
    roundbankers row rpad rtrim second sha1 sha256 sign signbit sin sinh split split_part sqrt starts_with
    str_split str_split_regex strftime string_split string_split_regex string_to_array strip_accents strlen
    strpos strptime struct_extract struct_pack substr substring substring_grapheme subtract suffix tan tanh
    time_bucket timezone to_base to_base64 to_binary to_centuries to_days to_decades to_hex to_hours to_json
    to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp
    to_weeks to_years today translate trim trunc try_strptime typeof ucase unbin unhex unicode unnest upper
    url_decode url_encode uuid_extract_timestamp week weekday weekofyear xor year yearweek random
    gen_random_uuid uuid row_to_json current_date get_current_timestamp get_current_time current_localtime
    current_localtimestamp construct_array list_grade_up array_grade_up
    get_bit set_bit struct_values struct_keys
    """
)

# Functions that DuckDB's parser makes of operators and clauses: `a || b`, `a LIKE b`, `a[1]`, `{'a': 1}`, `x IN (...)`.
_OPERATORS = word_set(
    """
    != !__postfix !~~ !~~* % & && * ** + - ->> -> / // < <-> << <= <=> <@ = > >= >> @ @> ^ ^@ | || ~ ~~ ~~* ~~~
    """
) | frozenset(("like_escape", "ilike_escape", "not_like_escape", "not_ilike_escape", "is distinct from", "__between"))

# Functions that only our own checks of long texts (sql.sizes) may call.
_OURS = word_set("error")

ALLOWED = AGGREGATES | WINDOWS | _SCALARS | _OPERATORS | _OURS
CALLABLE = ALLOWED - _OPERATORS - _OURS
