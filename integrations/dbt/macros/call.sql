{# The call of a function, its arguments by name, values and columns; those that are none are left out. #}
{% macro call(function, arguments, columns={}) -%}
  {%- set written = [] -%}
  {%- for name, value in arguments.items() if value is not none -%}
    {%- do written.append(name ~ ' => ' ~ patternlake.literal(value)) -%}
  {%- endfor -%}
  {%- for name, column in columns.items() if column is not none -%}
    {%- do written.append(name ~ ' => ' ~ column) -%}
  {%- endfor -%}
  {{- function ~ '(' ~ written | join(', ') ~ ')' -}}
{%- endmacro %}

{# A value as SQL: a text, a number, true or false, a dictionary of texts, a date, or a moment (one without a zone is UTC's). #}
{% macro literal(value) -%}
  {%- if value is sameas true or value is sameas false -%}
    {{- value | string | lower -}}
  {%- elif value is number -%}
    {{- value -}}
  {%- elif value is mapping -%}
    {%- set written = [] -%}
    {%- for key, each in value.items() -%}
      {%- do written.append(patternlake.literal(key)) -%}
      {%- do written.append('NULL' if each is none else patternlake.literal(each | string)) -%}
    {%- endfor -%}
    {{- 'map(' ~ written | join(', ') ~ ')' -}}
  {%- elif value is string -%}
    {{- "'" ~ value.replace("\\", "\\\\").replace("'", "\\'") ~ "'" -}}
  {%- elif value.isoformat is defined and value.hour is not defined -%}
    {{- "'" ~ value.isoformat() ~ "'" -}}
  {%- elif value.isoformat is defined -%}
    {%- set zone = '' if value.tzinfo else '+00:00' -%}
    {{- "TIMESTAMP '" ~ value.isoformat(' ') ~ zone ~ "'" -}}
  {%- else -%}
    {%- do exceptions.raise_compiler_error(
      "patternlake: " ~ value ~ " is no argument; a text, a number, true or false, a dictionary, a date or a moment would be right"
    ) -%}
  {%- endif -%}
{%- endmacro %}
