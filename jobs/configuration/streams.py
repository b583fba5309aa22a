"""The `streams` section of the configuration: where events come from and what their columns mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from patternlake.delta_tables.databases.store_options import is_object_store
from patternlake.jobs.configuration import values
from patternlake.jobs.configuration.file_patterns import is_pattern, reaches
from patternlake.jobs.configuration.source_options import PACE_OPTIONS, wrong_option
from patternlake.jobs.configuration.sql import sql_expression
from patternlake.udfs.errors import SHOWN_OF_PATH, shorten
from patternlake.udfs.nearest_names import did_you_mean

FORMATS = ("csv", "json", "parquet", "xes", "delta")
NO_XES_IN_STORES = (
    "XES files are not read from an object store; copy them to a folder that every machine of Spark reaches"
)

PROBABILITY_TOLERANCE = 1e-3
"""How far above 1 the probabilities of a key and step may sum: those of four decimals do so often."""
QUARANTINE_WARNING = 0.1
"""Share of a batch above which its quarantined rows are worth a warning."""


class Section(BaseModel):
    """A part of the configuration: immutable, no unknown keys, no silent conversion of types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=False, allow_inf_nan=False)


def problem(message: str, *key: str) -> PydanticCustomError:
    """An error of a whole section that belongs to one of its keys."""
    return PydanticCustomError("problem", "{message}", {"message": message, "key": list(key)})


def problems(found: Sequence[PydanticCustomError]) -> PydanticCustomError:
    """Several errors that `problem` gives as one."""
    told = [each.context or {} for each in found]
    return PydanticCustomError(
        "problem", "{message}", {"message": "\n".join(each["message"] for each in told), "key": [], "all": told}
    )


def _expression(value: str) -> str:
    if not value.strip():
        raise ValueError("is empty; write a SQL expression over the source's columns")
    return sql_expression(value.strip())


def _not_empty(value: str) -> str:
    if not value.strip():
        raise ValueError("is empty")
    return value.strip()


def write_options(given: Any) -> Any:
    """YAML's true, 5 and 0.1 are the texts that Spark's options are made of.

    What stands for a missing value in a file is kept as it is written: -999.00 is no -999.0 there.

    Raises
    ------
    ValueError
        Such a text is one that YAML takes for true or false, in any of the words for them.
    """
    if not isinstance(given, dict):
        return given
    found = {}
    for key, value in given.items():
        if str(key).lower() in ("nullvalue", "emptyvalue"):
            if isinstance(value, bool):
                raise ValueError(f"{key} is {str(value).lower()} in YAML, whichever word stands there; quote it: '…'")
            value = values.written(value)
        found[key] = values.as_text(value)
    return found


def _several(given: Any) -> Any:
    return [given] if isinstance(given, str) else given


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and 1 <= int(text) <= values.INT


def _attribute(given: Any) -> Any:
    return {"type": given} if isinstance(given, str) else given


def _one_of(*allowed: str) -> AfterValidator:
    def check(value: str) -> str:
        if value not in allowed:
            raise ValueError(f"{shorten(value)} is not one of {', '.join(allowed)}{did_you_mean(value, allowed)}")
        return value

    return AfterValidator(check)


ObjectName = Annotated[str, AfterValidator(values.object_name)]
AttributeName = Annotated[str, AfterValidator(values.attribute_name)]
Expression = Annotated[str, AfterValidator(_expression)]
Text = Annotated[str, AfterValidator(_not_empty)]
Lateness = Annotated[timedelta | None, BeforeValidator(values.lateness)]


class Source(Section):
    """Files of one format, or a Delta table by name or path."""

    format: Annotated[str, _one_of(*FORMATS)] | None = None
    path: Text | None = None
    table: Text | None = None
    options: Annotated[dict[str, str], BeforeValidator(write_options)] = Field(default_factory=dict)
    on_bad_file: Annotated[str, _one_of("fail", "quarantine")] = "fail"

    @model_validator(mode="after")
    def _files_or_table(self) -> Source:
        if self.kind == "matches":
            return self
        wrong = wrong_option(self.kind, self.options)
        if wrong is not None:
            option, told = wrong
            raise problem(told, "options", option)
        for option in self.options:
            if option.lower() == "maxfilespertrigger" and not _is_count(self.options[option]):
                raise problem(
                    f"{shorten(self.options[option])} is not a whole number from 1 to {values.INT}", "options", option
                )
        if self.kind == "delta" and self.on_bad_file != "fail":
            raise problem(f"{shorten(self.on_bad_file)}: a file of a table cannot be left out", "on_bad_file")
        if self.table is not None:
            if self.path is not None:
                raise problem(
                    f"{shorten(self.path, SHOWN_OF_PATH)} beside table: {shorten(self.table)}; a source has one of "
                    "the two",
                    "path",
                )
            if self.format not in (None, "delta"):
                raise problem(f"{shorten(self.format)}: a table is read as delta; leave the format out", "format")
            return self
        if self.path is None:
            raise problem("missing; a source has a path (with its format) or a table", "path")
        if self.format is None:
            raise problem(f"missing; write one of {', '.join(FORMATS)}", "format")
        if self.format == "xes" and is_object_store(self.path):
            raise problem(f"{shorten(self.path, SHOWN_OF_PATH)}: {NO_XES_IN_STORES}", "path")
        return self

    @property
    def kind(self) -> Literal["csv", "json", "parquet", "xes", "delta", "matches"]:
        """The format; a table is delta, matches are those of a subscription."""
        return self.format or "delta"  # type: ignore[return-value]

    def option(self, name: str, default: str = "") -> str:
        """An option's text; Spark's options ignore case."""
        for key, value in self.options.items():
            if key.lower() == name.lower():
                return value
        return default

    @property
    def read_options(self) -> dict[str, str]:
        """The options, with the defaults that are ours and not Spark's: CSV doubles a quote inside quotes."""
        quote = self.option("quote", '"')
        if self.kind != "csv" or not quote or any(key.lower() == "escape" for key in self.options):
            return dict(self.options)
        return {"escape": quote, **self.options}

    @property
    def encoding(self) -> str:
        """The encoding of text, empty where the options do not name one: UTF-8."""
        return self.option("encoding") or self.option("charset")

    def clash(self, lake: str) -> str | None:
        """What is wrong where the files of a lake would be read as well; None: they would not."""
        if self.kind in ("delta", "matches") or self.path is None:
            return None
        recursive = self.option("recursiveFileLookup").lower() == "true"
        if not reaches(self.path, lake, recursive=recursive, names=self.option("pathGlobFilter")):
            return None
        folder = not recursive and not is_pattern(self.path)
        pattern = f"such as {self.path.rstrip('/')}/*.{self.format}" if folder else "that leaves them out"
        return (
            f"{shorten(self.path, SHOWN_OF_PATH)} means files of the lake, {shorten(lake, SHOWN_OF_PATH)}, too: "
            f"write a pattern {pattern}, or put one of the two elsewhere"
        )

    @property
    def meaning(self) -> dict[str, Any]:
        """What decides how a row is read; not the path and not the pace, which may change at any time."""
        options = {key.lower(): value for key, value in self.read_options.items() if key.lower() not in PACE_OPTIONS}
        return {"format": self.kind, "options": dict(sorted(options.items()))}


class Attribute(Section):
    """A typed attribute; without an expression, the source's column of the attribute's name."""

    type: Annotated[str, AfterValidator(values.attribute_type)]
    expr: Expression | None = None


class StreamConfiguration(Section):
    """One stream: its source, and SQL expressions that make events of the source's rows."""

    source: Source
    time: Expression
    name: Expression
    key: Expression | None = None
    attributes: dict[AttributeName, Annotated[Attribute, BeforeValidator(_attribute)]] = Field(default_factory=dict)
    ddl: Text | None = Field(default=None, alias="schema")
    timezone: Annotated[str, BeforeValidator(values.as_written), AfterValidator(values.timezone)] = "UTC"
    step: Expression | None = None
    probability: Expression | None = None
    probability_tolerance: float = Field(default=PROBABILITY_TOLERANCE, ge=0, lt=1)
    event_id: Expression | None = None
    order: Annotated[list[Expression], BeforeValidator(_several), Field(min_length=1)] | None = None
    tokens: list[Expression] | None = Field(default=None, min_length=1)
    allowed_lateness: Lateness = timedelta(0)
    quarantine_warning: float | None = Field(default=None, ge=0, le=1)
    on_change: Annotated[str, _one_of("fail", "rebuild")] = "fail"

    @model_validator(mode="after")
    def _together(self) -> StreamConfiguration:
        for given, missing in (("step", "probability"), ("probability", "step")):
            if getattr(self, given) is not None and getattr(self, missing) is None:
                raise problem(
                    f"missing beside {given}; a probabilistic stream has both, any other has neither", missing
                )
        if self.step is None and "probability_tolerance" in self.model_fields_set:
            raise problem("only of use beside step and probability; leave it out", "probability_tolerance")
        source = self.source
        if self.ddl is not None and source.kind in ("delta", "parquet"):
            raise problem(
                f"{shorten(self.ddl)}: a {source.kind} source brings its own types; leave the schema out", "schema"
            )
        if source.kind == "csv" and self.ddl is None and source.option("header").lower() != "true":
            raise problem("missing; a csv source without schema needs `header: true`", "source", "options", "header")
        return self

    @property
    def probabilistic(self) -> bool:
        """Whether events carry a step and a probability."""
        return self.step is not None

    def expression(self, attribute: str) -> str:
        """The SQL expression of an attribute."""
        return self.attributes[attribute].expr or "`" + attribute.replace("`", "``") + "`"

    @property
    def types(self) -> dict[str, str]:
        """Spark type of each attribute, in the order of the configuration."""
        return {name: attribute.type for name, attribute in self.attributes.items()}

    @property
    def meaning(self) -> dict[str, Any]:
        """What must not change while rows of both meanings would stand in one stream; goes into publications."""
        found: dict[str, Any] = {
            "source": self.source.meaning,
            "schema": self.ddl,
            "time": self.time,
            "name": self.name,
            "key": self.key,
            "attributes": {
                name: {"type": attribute.type, "expr": self.expression(name)}
                for name, attribute in self.attributes.items()
            },
            "tokens": None if self.tokens == ["name"] else self.tokens,
            "step": self.step,
            "probability": self.probability,
            "timezone": self.timezone,
        }
        # Left out where they mean what streams meant before they could be set.
        if self.order is not None:
            found["order"] = self.order
        if self.event_id is not None:
            found["event_id"] = self.event_id
        if self.probability_tolerance != PROBABILITY_TOLERANCE:
            found["probability_tolerance"] = self.probability_tolerance
        return found


def meaning_as_now(published: Mapping[str, Any]) -> dict[str, Any]:
    """What a stream's configuration meant when it was published, in the words of `StreamConfiguration.meaning`.

    Before CSV had a default of our own, Spark's backslash escaped a quote where the options did not say otherwise.
    """
    source = published.get("source", {})
    if source.get("format") != "csv" or "escape" in source.get("options", {}):
        return dict(published)
    return {**published, "source": {**source, "options": dict(sorted({**source["options"], "escape": "\\"}.items()))}}
