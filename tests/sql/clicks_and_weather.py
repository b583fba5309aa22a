"""Two streams of one source whose views have columns of many kinds: attributes of some types, step and probability."""

CLICKS_AND_WEATHER = """
  clicks:
    source: {{format: json, path: {folder}/data}}
    time: at
    name: page
    key: user
    timezone: Europe/Berlin
    attributes: {{price: double, paid: 'decimal(9,2)', seen: timestamp, a b: {{type: int, expr: number}}}}
  weather:
    source: {{format: json, path: {folder}/data}}
    time: at
    name: page
    step: number
    probability: share
"""
"""Their part of a configuration, below ``streams:``; to be formatted with the folder above the data."""
