"""Java classes that servers in Spark's JVM want by name: compiled from their source when a process first needs them.

Hive and gRPC make their own objects, from names of classes, so that an object of Python's cannot stand in for one. The
sources stand in the folder ``java``; Janino, which Spark compiles its queries with, makes classes of them in memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

SOURCES = Path(__file__).with_name("java")
PACKAGE = "patternlake"
# A class can be defined only when the one that it extends is there.
_IN_ORDER = (
    "Told",
    "PasswordFile",
    "CallsOfUser",
    "RefusedCalls",
    "ConnectPasswords",
    "Settings",
    "Reading",
    "ReadingRule",
    "RefusedFunction",
    "ReadingRequests",
    "ReadingCalls",
    "ConnectReading",
    "ThriftSessions",
    "ThriftQueries",
    "ConnectQueries",
    "Entrance",
    "Doorway",
    "Handshakes",
    "Watch",
    "ShutDoor",
)


def define(jvm: Any, gateway: Any) -> None:
    """Let a JVM know the classes, in the loader that has Spark's own; idempotent.

    Parameters
    ----------
    jvm, gateway
        Of a running session.
    """
    loader = jvm.java.lang.ClassLoader.getSystemClassLoader()
    if _known(loader):
        return
    codes = _compiled(jvm, gateway, loader)
    class_of, new_array = jvm.java.lang.Class, gateway.new_array
    integer = jvm.java.lang.Integer.TYPE
    taken = new_array(class_of, 4)
    for position, kind in enumerate((class_of.forName("java.lang.String"), class_of.forName("[B"), integer, integer)):
        taken[position] = kind
    # Spark starts its JVM with java.lang open to reflection.
    method = class_of.forName("java.lang.ClassLoader").getDeclaredMethod("defineClass", taken)
    method.setAccessible(True)
    for name in _IN_ORDER:
        code = codes[f"{PACKAGE}/{name}.class"]
        given = new_array(jvm.java.lang.Object, 4)
        given[0], given[1], given[2], given[3] = f"{PACKAGE}.{name}", bytes(code), 0, len(code)
        method.invoke(loader, given)


def _known(loader: Any) -> bool:
    try:
        loader.loadClass(f"{PACKAGE}.{_IN_ORDER[-1]}")
    except Py4JJavaError:
        return False
    return True


def _compiled(jvm: Any, gateway: Any, loader: Any) -> Any:
    """The code of each class by the name of its file."""
    made = jvm.org.codehaus.commons.compiler.util.resource.MapResourceCreator()
    compiler = jvm.org.codehaus.janino.Compiler()
    compiler.setIClassLoader(jvm.org.codehaus.janino.ClassLoaderIClassLoader(loader))
    compiler.setClassFileCreator(made)
    sources = sorted(SOURCES.glob("*.java"))
    files = gateway.new_array(jvm.java.io.File, len(sources))
    for position, source in enumerate(sources):
        files[position] = jvm.java.io.File(str(source))
    compiler.compile(files)
    return made.getMap()
