-- Who filled a cart and left within the hour without paying. Exact: the sketch's candidates are verified.
{{ config(materialized='table') }}
SELECT key AS customer, first_time AS filled_at, last_time AS left_at
FROM {{ patternlake.match_seq('clicks', 'cart ; !pay ; leave PARTITION BY user WITHIN 1 HOUR') }}
