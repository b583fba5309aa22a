"""Texts in sources of Java: string expressions and what calls are given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r'''(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<block>"""[ \t]*\n.*?""")
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<char>'(?:[^'\\]|\\.)')
    |(?P<number>\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?[LlFfDd]?)
    |(?P<word>[A-Za-z_$][\w$]*)
    |(?P<sign>->|.)''',
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\"}


@dataclass(frozen=True)
class JavaToken:
    """A piece of a source, with the number of its line."""

    kind: str
    text: str
    line: int


def java_tokens(source: str) -> list[JavaToken]:
    """The tokens of a source without blanks and comments."""
    done, line = [], 1
    for found in _TOKEN.finditer(source):
        if found.lastgroup != "space":
            done.append(JavaToken(found.lastgroup or "", found.group(), line))
        line += found.group().count("\n")
    return done


def string_of(token: JavaToken) -> str:
    """The text that a literal says."""
    if token.kind == "block":
        lines = token.text[3:-3].split("\n")[1:]
        indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
        text = "\n".join(line[indent:] for line in lines)
    else:
        text = token.text[1:-1]
    return re.sub(
        r"\\(u+[0-9a-fA-F]{4}|.)",
        lambda m: chr(int(m[1].lstrip("u"), 16)) if m[1][0] == "u" and len(m[1]) > 4 else _ESCAPES.get(m[1], m[1]),
        text,
    )


def matching(tokens: Sequence[JavaToken], at: int) -> int:
    """Where the bracket closes that opens at a token."""
    depth = 0
    for end in range(at, len(tokens)):
        depth += (tokens[end].text in ("(", "[", "{")) - (tokens[end].text in (")", "]", "}"))
        if not depth:
            return end
    raise ValueError(f"line {tokens[at].line}: a bracket is not closed")


def arguments_of(tokens: Sequence[JavaToken], at: int) -> list[list[JavaToken]]:
    """The arguments between the parentheses that open at a token."""
    parts: list[list[JavaToken]] = [[]]
    depth = 0
    for token in tokens[at + 1 : matching(tokens, at)]:
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if token.text == "," and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def text_of(tokens: Sequence[JavaToken], known: Mapping[str, str]) -> str | None:
    """What an expression of strings says: literals, names, ``+``, ``format`` and ``formatted``; None for others."""
    pieces: list[str] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        following = tokens[at + 1].text if at + 1 < len(tokens) else ""
        piece: str | None
        if token.kind in ("string", "block"):
            piece = string_of(token)
        elif token.text == "(":
            end = matching(tokens, at)
            piece, at = text_of(tokens[at + 1 : end], known), end
        elif token.text in ("String", "format") and following in (".", "("):
            at += 2 if following == "." else 0
            end = matching(tokens, at + 1)
            given = [text_of(one, known) for one in arguments_of(tokens, at + 1)]
            if any(one is None for one in given):
                return None
            piece, at = _format([one for one in given if one is not None]), end
        elif token.kind == "word" and token.text in known and following in ("", "+", "."):
            piece = known[token.text]
        else:
            return None
        at += 1
        while at + 2 < len(tokens) and tokens[at].text == "." and tokens[at + 2].text == "(":
            end = matching(tokens, at + 2)
            given = [text_of(one, known) for one in arguments_of(tokens, at + 2)]
            if tokens[at + 1].text != "formatted" or piece is None or any(one is None for one in given):
                return None
            piece, at = _format([piece, *[one for one in given if one is not None]]), end + 1
        if piece is None or (at < len(tokens) and tokens[at].text != "+"):
            return None
        pieces.append(piece)
        at += 1
    return "".join(pieces) if pieces else None


def _format(given: Sequence[str]) -> str:
    rest = iter(given[1:])
    return re.sub(r"%(?:\d+\$)?[sd]", lambda _: next(rest, ""), given[0]).replace("%%", "%")
