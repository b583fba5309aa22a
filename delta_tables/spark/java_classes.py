"""Java classes of ours: compiled from their source when a process first needs them.

Where Spark, Hive or gRPC make objects from the names of classes, or ask more than py4j can answer, an object of
Python's cannot stand in. The sources stand in folders called ``java``; Janino, which Spark compiles its queries with,
makes classes of them in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

PACKAGE = "patternlake"


def define(jvm: Any, gateway: Any, sources: Path, names: Sequence[str], beside: str = "") -> None:
    """Let a JVM know the classes of a folder; idempotent.

    Parameters
    ----------
    jvm, gateway
        Of a running session.
    sources
        The folder.
    names
        Of its classes, each behind the one that it extends.
    beside
        A class that they extend. They go into the loader that has it, or else into the one that has Spark's own: jars
        that Spark fetches have a loader of their own.
    """
    loader = jvm.java.lang.ClassLoader.getSystemClassLoader()
    if beside:
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(beside).getClassLoader()
    if _knows_class(loader, names[-1]):
        return
    codes = _compile(jvm, gateway, loader, sources)
    class_of, new_array = jvm.java.lang.Class, gateway.new_array
    integer = jvm.java.lang.Integer.TYPE
    taken = new_array(class_of, 4)
    for position, kind in enumerate((class_of.forName("java.lang.String"), class_of.forName("[B"), integer, integer)):
        taken[position] = kind
    # Spark starts its JVM with java.lang open to reflection.
    method = class_of.forName("java.lang.ClassLoader").getDeclaredMethod("defineClass", taken)
    method.setAccessible(True)
    for name in names:
        code = codes[f"{PACKAGE}/{name}.class"]
        given = new_array(jvm.java.lang.Object, 4)
        given[0], given[1], given[2], given[3] = f"{PACKAGE}.{name}", bytes(code), 0, len(code)
        method.invoke(loader, given)


def _knows_class(loader: Any, name: str) -> bool:
    try:
        loader.loadClass(f"{PACKAGE}.{name}")
    except Py4JJavaError:
        return False
    return True


def _compile(jvm: Any, gateway: Any, loader: Any, folder: Path) -> Any:
    """The code of each class by the name of its file."""
    made = jvm.org.codehaus.commons.compiler.util.resource.MapResourceCreator()
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
    compiler.setClassFileCreator(made)
    sources = sorted(folder.glob("*.java"))
    files = gateway.new_array(jvm.java.io.File, len(sources))
    for position, source in enumerate(sources):
        files[position] = jvm.java.io.File(str(source))
    compiler.compile(files)
    return made.getMap()
