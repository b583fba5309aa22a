"""Statements of other engines in the words of Spark SQL.

A statement is rewritten token by token, so that the clause and the query about it are treated alike and what is the
same in Spark stays as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.row_pattern_suites.cases import NotApplicableError

TYPES = {
    "varchar": "STRING", "text": "STRING", "string": "STRING", "character varying": "STRING", "bool": "BOOLEAN",
    "int64": "BIGINT", "int32": "INT", "int4": "INT", "int8": "BIGINT", "int2": "SMALLINT", "float64": "DOUBLE",
    "hugeint": "DECIMAL(38,0)", "ubigint": "DECIMAL(20,0)", "uinteger": "BIGINT", "utinyint": "SMALLINT",
    "real": "FLOAT", "float4": "FLOAT", "float8": "DOUBLE", "double precision": "DOUBLE", "numeric": "DECIMAL",
    "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP", "datetime": "TIMESTAMP_NTZ", "bytea": "BINARY",
    "blob": "BINARY",
}  # fmt: skip
"""Names of types that Spark calls otherwise."""

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<string>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
    |(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)
    |(?P<word>[^\W\d]\w*)
    |(?P<sign>\{-|-\}|::|->>|->|\|\||<=|>=|<>|!=|==|:=|=>|\|>|//|.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """A piece of a statement."""

    kind: str
    text: str

    @property
    def word(self) -> str:
        """In upper case, for what is a word."""
        return self.text.upper() if self.kind == "word" else ""


@dataclass(frozen=True)
class Dialect:
    """How an engine's statements differ.

    Attributes
    ----------
    strings
        Whether ``"x"`` is a text and not a name.
    nulls_last
        Whether NULL comes last where ORDER BY does not say it; Spark has it first.
    functions
        Names of functions, in upper case, that Spark calls otherwise.
    unknown
        Functions, in upper case, that Spark does not have, and what they are.
    hash_comments
        Whether ``#`` begins a comment.
    """

    name: str
    strings: bool = False
    nulls_last: bool = True
    hash_comments: bool = False
    functions: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)


def tokens_of(text: str) -> list[Token]:
    """The tokens of a statement, blanks and comments among them."""
    return [Token(found.lastgroup or "", found.group()) for found in _TOKEN.finditer(text)]


def meaningful(text: str) -> list[Token]:
    """The tokens of a statement without blanks and comments."""
    return [token for token in tokens_of(text) if token.kind != "space"]


def closing(tokens: Sequence[Token], at: int) -> int:
    """Where the bracket closes that opens at a token."""
    depth = 0
    for end in range(at, len(tokens)):
        depth += (tokens[end].text in ("(", "[", "{", "{-")) - (tokens[end].text in (")", "]", "}", "-}"))
        if not depth:
            return end
    raise ValueError(f"a bracket is not closed: {write_tokens(tokens[at : at + 20])}")


def split_list(tokens: Sequence[Token]) -> list[list[Token]]:
    """The parts between commas outside brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in ("(", "[", "{", "{-")) - (token.text in (")", "]", "}", "-}"))
        if token.text == "," and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def write_tokens(tokens: Sequence[Token]) -> str:
    """The text of tokens."""
    return " ".join(token.text for token in tokens)


def translate(text: str, dialect: Dialect) -> str:
    """A statement in Spark SQL.

    Raises
    ------
    NotApplicableError
        It asks for what Spark, or the clause, does not have.
    """
    if dialect.hash_comments:
        text = re.sub(r"(?m)^(\s*)#.*$", r"\1", text)
    tokens = [_literal(token, dialect) for token in meaningful(text)]
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    tokens = _calls(tokens, dialect)
    tokens = _clauses(tokens, dialect)
    return write_tokens(_types(tokens))


def name_of(token: Token) -> str:
    """What a token names, without quotes."""
    return token.text[1:-1] if token.kind == "quoted" else token.text


def type_of(tokens: Sequence[Token]) -> str:
    """A type in Spark's words."""
    text = write_tokens(tokens).lower()
    lists = text.count("[ ]")
    text = text.replace("[ ]", "").strip()
    text = re.sub(r"\s*\(\s*", "(", text).replace(" ,", ",").replace(" )", ")")
    base = text.split("(")[0].strip()
    if base in ("varchar", "char", "character"):
        text = "STRING"
    elif base == "struct":
        inside = meaningful(text)[2:-1]
        text = f"STRUCT<{', '.join(f'{part[0].text}: {type_of(part[1:])}' for part in split_list(inside))}>"
    else:
        text = TYPES.get(base, base) + text[len(base) :]
    for _ in range(lists):
        text = f"ARRAY<{text}>"
    return text


def _literal(token: Token, dialect: Dialect) -> Token:
    """A token with Spark's quotes, and Spark's division of whole numbers."""
    if token.text == "//":
        return Token("word", "DIV")
    if token.kind == "string":
        inside = token.text[1:-1].replace("\\", "\\\\").replace("''", "\\'")
        return Token("string", f"'{inside}'")
    if token.kind == "quoted" and token.text[0] == '"':
        inside = token.text[1:-1].replace('""', '"')
        if dialect.strings:
            return Token("string", "'" + inside.replace("'", "\\'") + "'")
        return Token("quoted", "`" + inside.replace("`", "``") + "`")
    return token


def _calls(tokens: list[Token], dialect: Dialect) -> list[Token]:
    """The functions by Spark's names."""
    done = list(tokens)
    for at, token in enumerate(tokens):
        if token.kind == "word" and at + 1 < len(tokens) and tokens[at + 1].text == "(":
            if token.word in dialect.unknown:
                raise NotApplicableError(dialect.unknown[token.word])
            if token.word in dialect.functions:
                done[at] = Token("word", dialect.functions[token.word])
    return done


def _types(tokens: list[Token]) -> list[Token]:
    """The types of casts by Spark's names."""
    done: list[Token] = []
    for at, token in enumerate(tokens):
        cast = at > 0 and (tokens[at - 1].text == "::" or (tokens[at - 1].word == "AS" and _in_cast(tokens, at - 1)))
        following = tokens[at + 1] if at + 1 < len(tokens) else None
        if following and following.kind == "string" and TYPES.get(token.text.lower()) == "STRING":
            continue  # VARCHAR 'a' is 'a'
        sized = following is not None and following.text == "("  # VARCHAR(7) is known to Spark
        known = TYPES.get(token.text.lower()) if cast and not sized else None
        done.append(Token("word", known) if known else token)
    return done


def _in_cast(tokens: Sequence[Token], at: int) -> bool:
    """Whether an AS is of CAST."""
    depth = 0
    for begin in range(at - 1, 0, -1):
        depth += (tokens[begin].text in (")", "]")) - (tokens[begin].text in ("(", "["))
        if depth < 0:
            return tokens[begin - 1].word in ("CAST", "TRY_CAST")
    return False


BEGINNINGS: Mapping[tuple[str, ...], int] = {
    ("PARTITION", "BY"): 0, ("ORDER", "BY"): 1, ("MEASURES",): 2, ("ONE", "ROW"): 3, ("ALL", "ROWS"): 3,
    ("AFTER", "MATCH"): 4, ("PATTERN",): 5, ("SUBSET",): 6, ("DEFINE",): 7,
}  # fmt: skip
"""How the parts of a clause begin, and the standard's order of them."""


def clause_parts(tokens: Sequence[Token]) -> list[tuple[int, list[Token]]]:
    """The parts of a clause as they are written, each with its place in the standard's order."""
    parts: list[tuple[int, list[Token]]] = []
    depth = 0
    for at, token in enumerate(tokens):
        place = next(
            (
                place
                for words, place in BEGINNINGS.items()
                if tuple(one.word for one in tokens[at : at + len(words)]) == words
                and (words != ("PATTERN",) or (at + 1 < len(tokens) and tokens[at + 1].text == "("))
                and (at == 0 or tokens[at - 1].text not in (",", ".", "AS", "("))
                and (at + 1 == len(tokens) or tokens[at + 1].text not in (",", ")", ".", "="))
            ),
            None,
        )
        if not depth and place is not None:
            parts.append((place, []))
        elif not parts:
            parts.append((-1, []))
        depth += (token.text in ("(", "[", "{", "{-")) - (token.text in (")", "]", "}", "-}"))
        parts[-1][1].append(token)
    return parts


def _clauses(tokens: list[Token], dialect: Dialect) -> list[Token]:
    """The statement with each clause's parts in the standard's order, and NULL ordered as the engine does."""
    done: list[Token] = []
    at = 0
    while at < len(tokens):
        done.append(tokens[at])
        if tokens[at].word == "MATCH_RECOGNIZE" and at + 1 < len(tokens) and tokens[at + 1].text == "(":
            end = closing(tokens, at + 1)
            done += [tokens[at + 1], *_clause(_clauses(tokens[at + 2 : end], dialect), dialect), tokens[end]]
            at = end
        at += 1
    return done


def _clause(tokens: list[Token], dialect: Dialect) -> list[Token]:
    parts = clause_parts(tokens)
    places = [place for place, _ in parts]
    if len(set(places)) == len(places):
        parts.sort(key=lambda part: part[0])  # where one comes twice, it is an error as it stands
    done: list[Token] = []
    for place, part in parts:
        if place == 1 and dialect.nulls_last:
            part = [*part[:2], *_nulls_last(part[2:])]
        done += part
    return done


def _nulls_last(tokens: Sequence[Token]) -> list[Token]:
    """The terms of an order, with NULLS LAST where they say nothing."""
    done: list[Token] = []
    for term in split_list(tokens):
        words = [token.word for token in term]
        done += [*([Token("sign", ",")] if done else []), *term]
        if term and "NULLS" not in words:
            done += [Token("word", "NULLS"), Token("word", "LAST")]
    return done


def clauses_of(tokens: Sequence[Token]) -> list[list[Token]]:
    """What stands between the parentheses of each clause."""
    return [
        list(tokens[at + 2 : closing(tokens, at + 1)])
        for at, token in enumerate(tokens[:-1])
        if token.word == "MATCH_RECOGNIZE" and tokens[at + 1].text == "("
    ]


def each_clause(text: str, change: Callable[[list[Token]], list[Token]]) -> str:
    """A statement with the tokens between the parentheses of each clause changed."""
    tokens, done, at = meaningful(text), list[Token](), 0
    while at < len(tokens):
        done.append(tokens[at])
        if tokens[at].word == "MATCH_RECOGNIZE" and at + 1 < len(tokens) and tokens[at + 1].text == "(":
            end = closing(tokens, at + 1)
            done += [tokens[at + 1], *change(tokens[at + 2 : end]), tokens[end]]
            at = end
        at += 1
    return write_tokens(done)
