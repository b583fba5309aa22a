"""The pattern language: one text language that every engine takes a part of.

Modules are imported one by one (`parser.parse`, `printing.to_text`, `operands.number`, `engines.check`), so that a
worker loads only what it uses.
"""
