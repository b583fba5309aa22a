{#
  A pattern always happens. Without `key_column`: at least once; the failure is one row. With it: for each value of this
  column of the model, which is the key that the pattern is partitioned by; each value without a match is a failure.
#}
{% test pattern_always(model, stream, pattern, key_column=none, function='match_pattern', arguments=none) %}
  {%- if key_column is none %}
  SELECT {{ patternlake.literal(pattern) }} AS never_happened
  WHERE NOT EXISTS ({{ patternlake.matches(stream, pattern, function, arguments) }})
  {%- else %}
  SELECT DISTINCT CAST({{ key_column }} AS STRING) AS key_without_match FROM {{ model }} WHERE {{ key_column }} IS NOT NULL
  EXCEPT SELECT key FROM ({{ patternlake.matches(stream, pattern, function, arguments) }})
  {%- endif %}
{% endtest %}
