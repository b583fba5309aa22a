"""Objects in a store, put through Hadoop's client by as few requests as that takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_THERE_ALREADY = "FileAlreadyExistsException"


def put_commit(session: SparkSession, path: str, lines: Iterable[str]) -> bool:
    """Put a commit of a Delta table, unless there is one of its number, by the store that Delta itself commits with.

    Parameters
    ----------
    session
        Any session.
    path
        Of the object in the log.
    lines
        The actions, each as JSON.

    Returns
    -------
    bool
        Whether it was put; else another one is there.
    """
    spark: Any = session
    jvm, own = spark._jvm, spark._jsparkSession
    # Delta's own choice for the scheme, or ours.
    stores = getattr(getattr(jvm.org.apache.spark.sql.delta.storage, "LogStore$"), "MODULE$")
    place = jvm.org.apache.hadoop.fs.Path(path)
    listed = jvm.java.util.ArrayList()
    for line in lines:
        listed.add(line)
    actions = jvm.scala.jdk.javaapi.CollectionConverters.asScala(listed.iterator())
    try:
        stores.apply(own).write(place, actions, False, own.sessionState().newHadoopConf())
    except Py4JJavaError as error:
        if _THERE_ALREADY not in str(error.java_exception.toString()):
            raise
        return False
    return True


def put_object(session: SparkSession, path: str, content: bytes) -> None:
    """Put an object by one request, in the place of one that is there."""
    spark: Any = session
    place = spark._jvm.org.apache.hadoop.fs.Path(path)
    store = place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    builder = store.createFile(place)
    builder.overwrite(True)
    builder.recursive()
    # Hadoop would ask what is there.
    builder.opt("fs.s3a.create.performance", True)
    file = builder.build()
    try:
        file.write(bytearray(content))
    finally:
        file.close()
