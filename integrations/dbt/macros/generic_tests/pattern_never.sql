{#
  A pattern never happens: each match is a failure. `function` is match_pattern, or match_seq, whose answers are verified.
  Further arguments of the function stand under `arguments`.
#}
{% test pattern_never(model, stream, pattern, function='match_pattern', arguments=none) %}
  {{ patternlake.matches(stream, pattern, function, arguments) }}
{% endtest %}
