"""The options that a source takes: those of Spark's and Delta's readers that `ingest` reads with, by format."""

from __future__ import annotations

from collections.abc import Iterable

from patternlake.udfs.nearest_names import did_you_mean

LISTING = ("pathGlobFilter", "recursiveFileLookup", "modifiedAfter", "modifiedBefore")
STREAMED = (*("maxFilesPerTrigger", "maxBytesPerTrigger", "maxCachedFiles", "discardCachedInputRatio", "latestFirst"),)
_FILES = (*LISTING, *STREAMED, "basePath", "ignoreInvalidPartitionPaths")
# Of text that becomes values of other types, where the stream has a schema.
_TYPED = (
    *("dateFormat", "timeFormat", "timestampFormat", "timestampNTZFormat", "timeZone", "locale"),
    *("enableDateTimeParsingFallback", "encoding", "charset", "lineSep", "multiLine"),
)
_BY_FORMAT = {
    "csv": (
        *(*_FILES, *_TYPED, "header", "sep", "delimiter", "quote", "escape", "charToEscapeQuoteEscaping", "comment"),
        *("nullValue", "emptyValue", "nanValue", "positiveInf", "negativeInf", "preferDate"),
        *("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "unescapedQuoteHandling"),
        *("maxColumns", "maxCharsPerColumn", "inputBufferSize", "columnPruning"),
    ),
    "json": (
        *(*_FILES, *_TYPED, "samplingRatio", "dropFieldIfAllNull", "prefersDecimal", "primitivesAsString"),
        *("allowComments", "allowUnquotedFieldNames", "allowSingleQuotes", "allowNumericLeadingZeros"),
        *("allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars", "allowNonNumericNumbers"),
    ),
    "parquet": (*_FILES, "mergeSchema", "datetimeRebaseMode", "int96RebaseMode"),
    "xes": (*LISTING, *STREAMED),
    "delta": (
        *("maxFilesPerTrigger", "maxBytesPerTrigger", "startingVersion", "startingTimestamp", "excludeRegex"),
        *("withEventTimeOrder", "schemaTrackingLocation", "schemaLocation", "allowSourceColumnDrop"),
        *("allowSourceColumnRename", "allowSourceColumnTypeChange"),
    ),
}

PACE_OPTIONS = frozenset(option.lower() for option in (*LISTING, *STREAMED))
"""Options that say how fast and when to read; all others change what the rows mean."""

_REBUILD = "write `on_change: rebuild` in the stream"
_BAD_FILE = "write `on_bad_file: quarantine` in the source"
_KEPT = "a rebuild reads all files again, and would lose the events of those that are gone"
_REFUSED = {
    "inferschema": "columns are text unless the stream's schema says otherwise",
    "mode": "records that cannot be read always go to quarantine",
    "enforceschema": "header names are always enforced",
    "columnnameofcorruptrecord": "records that cannot be read always go to quarantine",
    "maxfileage": "files of any age are read",
    "filenameonly": "a file is known by its whole address, as one of the same name in another folder has other rows",
    "ignorecorruptfiles": _BAD_FILE,
    "ignoremissingfiles": _BAD_FILE,
    "ignorechanges": _REBUILD,
    "ignoredeletes": _REBUILD,
    "ignorefiledeletion": _REBUILD,
    "skipchangecommits": _REBUILD,
    "failondataloss": "rows that are gone before they were read are always an error; run with --rebuild to go on",
    "readchangefeed": "ingest reads the rows of a table, not its changes",
    "readchangedata": "ingest reads the rows of a table, not its changes",
    "path": "write `path` beside `options`",
    "cleansource": _KEPT,
    "sourcearchivedir": _KEPT,
}
"""Options that would make ingest lose or change rows without a word, with what to do instead."""


def wrong_option(format: str, options: Iterable[str]) -> tuple[str, str] | None:
    """The first option that a source of a format does not take, and what is wrong with it; None where it takes all.

    Parameters
    ----------
    format
        One of ``csv``, ``json``, ``parquet``, ``xes`` and ``delta``.
    options
        Their names; case does not matter, as in Spark.
    """
    known = _BY_FORMAT[format]
    lower = {option.lower() for option in known}
    for option in options:
        if option.lower() in _REFUSED:
            return option, f"cannot be set: {_REFUSED[option.lower()]}"
        if option.lower() not in lower:
            told = f"is no option of a {format} source{did_you_mean(option, known)}"
            return option, f"{told}; known: {', '.join(sorted(known, key=str.lower))}"
    return None
