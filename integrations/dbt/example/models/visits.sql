-- A visit from the cart to leaving, with what was looked at in between; a view, which asks anew each time.
{{ config(materialized='view') }}
SELECT key AS customer, first_time, last_time, size(bindings['seen']) AS pages
FROM {{ patternlake.match_pattern(
    'clicks',
    'cart ; seen* ; leave DEFINE seen AS name IN (\'help\', \'pay\') PARTITION BY user WITHIN 1 HOUR'
) }}
