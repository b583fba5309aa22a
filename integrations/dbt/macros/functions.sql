{#
  PatternLake's SQL functions, each with its parameters and their names. An argument that is left out, or none, takes
  the function's own default. Texts, numbers, true and false, dictionaries (params) and moments of Python's are written
  as SQL. match_exists answers for each row of a table where key_column names the column of the row's key.
  Written by write_macros.py from the functions' declarations.
#}

{% macro match_seq(
    stream, pattern, policy=none, after_match=none, key=none, from_position=none, to_position=none, from_time=none,
    to_time=none, level=none, verify=none, params=none, max_matches=none, truncate=none, as_of=none
) -%}
  {{- patternlake.call('match_seq', {
    'stream': stream, 'pattern': pattern, 'policy': policy, 'after_match': after_match, 'key': key,
    'from_position': from_position, 'to_position': to_position, 'from_time': from_time, 'to_time': to_time,
    'level': level, 'verify': verify, 'params': params, 'max_matches': max_matches, 'truncate': truncate, 'as_of': as_of
  }) -}}
{%- endmacro %}

{% macro match_exists(
    stream, pattern, policy=none, key=none, from_position=none, to_position=none, from_time=none, to_time=none,
    as_of=none, verify=none, key_column=none
) -%}
  {{- patternlake.call('match_exists', {
    'stream': stream, 'pattern': pattern, 'policy': policy, 'key': key, 'from_position': from_position,
    'to_position': to_position, 'from_time': from_time, 'to_time': to_time, 'as_of': as_of, 'verify': verify
  }, {'key': key_column}) -}}
{%- endmacro %}

{% macro sketch_error(
    stream, pattern, policy=none, after_match=none, key=none, from_position=none, to_position=none, from_time=none,
    to_time=none, level=none, max_matches=none, truncate=none, as_of=none
) -%}
  {{- patternlake.call('sketch_error', {
    'stream': stream, 'pattern': pattern, 'policy': policy, 'after_match': after_match, 'key': key,
    'from_position': from_position, 'to_position': to_position, 'from_time': from_time, 'to_time': to_time,
    'level': level, 'max_matches': max_matches, 'truncate': truncate, 'as_of': as_of
  }) -}}
{%- endmacro %}

{% macro match_pattern(
    stream=none, pattern=none, policy=none, after_match=none, key=none, from_time=none, to_time=none, params=none,
    plan=none, max_matches=none, truncate=none, as_of=none, query=none, repetition=none, partial=none, name=none,
    time=none
) -%}
  {{- patternlake.call('match_pattern', {
    'stream': stream, 'pattern': pattern, 'policy': policy, 'after_match': after_match, 'key': key,
    'from_time': from_time, 'to_time': to_time, 'params': params, 'plan': plan, 'max_matches': max_matches,
    'truncate': truncate, 'as_of': as_of, 'query': query, 'repetition': repetition, 'partial': partial, 'name': name,
    'time': time
  }) -}}
{%- endmacro %}

{% macro explain_pattern(
    stream, pattern, params=none, plan=none, as_of=none, analyze=none
) -%}
  {{- patternlake.call('explain_pattern', {
    'stream': stream, 'pattern': pattern, 'params': params, 'plan': plan, 'as_of': as_of, 'analyze': analyze
  }) -}}
{%- endmacro %}

{% macro match_groups(
    stream, pattern, overlap=none, threshold=none, within=none, key=none, from_step=none, to_step=none, as_of=none
) -%}
  {{- patternlake.call('match_groups', {
    'stream': stream, 'pattern': pattern, 'overlap': overlap, 'threshold': threshold, 'within': within, 'key': key,
    'from_step': from_step, 'to_step': to_step, 'as_of': as_of
  }) -}}
{%- endmacro %}

{% macro group_members(
    stream, pattern, overlap=none, threshold=none, within=none, key=none, from_step=none, to_step=none, best=none,
    as_of=none
) -%}
  {{- patternlake.call('group_members', {
    'stream': stream, 'pattern': pattern, 'overlap': overlap, 'threshold': threshold, 'within': within, 'key': key,
    'from_step': from_step, 'to_step': to_step, 'best': best, 'as_of': as_of
  }) -}}
{%- endmacro %}

{% macro match_funnel(
    stream, pattern, within=none, mode=none, by=none, key=none, from_time=none, to_time=none, params=none, next=none,
    as_of=none, name=none, time=none
) -%}
  {{- patternlake.call('match_funnel', {
    'stream': stream, 'pattern': pattern, 'within': within, 'mode': mode, 'by': by, 'key': key, 'from_time': from_time,
    'to_time': to_time, 'params': params, 'next': next, 'as_of': as_of, 'name': name, 'time': time
  }) -}}
{%- endmacro %}

{% macro match_funnel_rows(
    stream, pattern, within=none, mode=none, key=none, from_time=none, to_time=none, params=none, as_of=none, name=none,
    time=none
) -%}
  {{- patternlake.call('match_funnel_rows', {
    'stream': stream, 'pattern': pattern, 'within': within, 'mode': mode, 'key': key, 'from_time': from_time,
    'to_time': to_time, 'params': params, 'as_of': as_of, 'name': name, 'time': time
  }) -}}
{%- endmacro %}

{% macro match_paths(
    stream, around=none, before=none, after=none, by=none, top=none, within=none, key=none, fold=none, from_time=none,
    to_time=none, max_paths=none, as_of=none, name=none, time=none
) -%}
  {{- patternlake.call('match_paths', {
    'stream': stream, 'around': around, 'before': before, 'after': after, 'by': by, 'top': top, 'within': within,
    'key': key, 'fold': fold, 'from_time': from_time, 'to_time': to_time, 'max_paths': max_paths, 'as_of': as_of,
    'name': name, 'time': time
  }) -}}
{%- endmacro %}

{% macro cet_count(
    query, key=none, from_time=none, to_time=none, as_of=none, stream=none, params=none, name=none, time=none
) -%}
  {{- patternlake.call('cet_count', {
    'query': query, 'key': key, 'from_time': from_time, 'to_time': to_time, 'as_of': as_of, 'stream': stream,
    'params': params, 'name': name, 'time': time
  }) -}}
{%- endmacro %}

{% macro cet_trends(
    query, key=none, from_time=none, to_time=none, max_trends=none, truncate=none, as_of=none, stream=none, params=none,
    from_trend=none, sample=none, name=none, time=none
) -%}
  {{- patternlake.call('cet_trends', {
    'query': query, 'key': key, 'from_time': from_time, 'to_time': to_time, 'max_trends': max_trends,
    'truncate': truncate, 'as_of': as_of, 'stream': stream, 'params': params, 'from_trend': from_trend,
    'sample': sample, 'name': name, 'time': time
  }) -}}
{%- endmacro %}

{% macro cet_aggregate(
    query, aggregate, key=none, from_time=none, to_time=none, as_of=none, stream=none, params=none, name=none, time=none
) -%}
  {{- patternlake.call('cet_aggregate', {
    'query': query, 'aggregate': aggregate, 'key': key, 'from_time': from_time, 'to_time': to_time, 'as_of': as_of,
    'stream': stream, 'params': params, 'name': name, 'time': time
  }) -}}
{%- endmacro %}

{% macro match_subscription(
    subscription, key=none, from_time=none, to_time=none, as_of=none
) -%}
  {{- patternlake.call('match_subscription', {
    'subscription': subscription, 'key': key, 'from_time': from_time, 'to_time': to_time, 'as_of': as_of
  }) -}}
{%- endmacro %}

{% macro predict_match(
    subscription, lookahead=none, threshold=none, key=none, as_of=none
) -%}
  {{- patternlake.call('predict_match', {
    'subscription': subscription, 'lookahead': lookahead, 'threshold': threshold, 'key': key, 'as_of': as_of
  }) -}}
{%- endmacro %}
