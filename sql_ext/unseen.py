"""Tells whoever asks that a name of the pattern never occurred in the stream: most such names are typed wrong."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Sequence

from patternlake.udfs.published import NameCount
from patternlake.udfs.unseen_names import unseen_names, unseen_text

logger = logging.getLogger(__name__)


def tell_unseen(names: Iterable[str], counts: Sequence[NameCount], *, names_are_tokens: bool = True) -> bool:
    """Warn, in the log and in Python's warnings.

    Parameters
    ----------
    names
        Names that a pattern asks for.
    counts
        As `Snapshot.name_counts` gives them.
    names_are_tokens
        As of `unseen_names`.

    Returns
    -------
    bool
        Whether there was anything to tell.
    """
    unseen = unseen_names(names, [row.name for row in counts], names_are_tokens=names_are_tokens)
    for name, nearest in unseen:
        text = unseen_text(name, nearest)
        logger.warning("%s", text)
        warnings.warn(text, stacklevel=4)
    return bool(unseen)
