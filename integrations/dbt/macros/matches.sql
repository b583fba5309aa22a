{# The exact matches of a pattern, as a query. #}
{% macro matches(stream, pattern, function='match_pattern', arguments=none) -%}
  {%- if function not in ('match_pattern', 'match_seq') -%}
    {%- do exceptions.raise_compiler_error(
      "patternlake: " ~ function ~ " finds no exact matches; match_pattern or match_seq would be right"
    ) -%}
  {%- endif -%}
  {%- set given = {'stream': stream, 'pattern': pattern} -%}
  {%- do given.update(arguments or {}) -%}
  SELECT * FROM {{ patternlake.call(function, given) }}
{%- endmacro %}
