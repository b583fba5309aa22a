"""What Python has looked up in the JVM by name, remembered: classes, and their static methods.

py4j asks the JVM for a name each time that it is used. The JVM looks for one without its package in each package that
PySpark imports, and for what it does not find through all jars. Measured: 0.2 to 0.7 ms for a name, some of them in
each call on a column; a tenth of what a job takes that works through Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass, JavaMember, JVMView

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _Class(JavaClass):  # type: ignore[misc]
    """A class whose static methods are asked for once."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaMember):
            self.__dict__[name] = found
        return found


class _Names(JVMView):  # type: ignore[misc]
    """The names of the JVM; a class that was found is asked for no more."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if type(found) is JavaClass:
            found.__class__ = _Class
            self.__dict__[name] = found
        return found


def remember_names(spark: SparkSession) -> None:
    """Remember what is looked up by name in a session's JVM, in this process and until it ends.

    A class stays what it is while the JVM runs. For processes that are PatternLake's own.

    Parameters
    ----------
    spark
        The session, with a JVM (not Spark Connect).
    """
    names = spark.sparkContext._jvm
    if type(names) is JVMView:
        names.__class__ = _Names
