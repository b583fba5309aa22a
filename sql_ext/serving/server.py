"""One process that others ask: by Hive's protocol (JDBC, ODBC) and Spark Connect, over one Spark with the functions."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from threading import Event, Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any

from patternlake.sql_ext.serving import java_classes
from patternlake.sql_ext.serving.delta_class_path import class_path
from patternlake.sql_ext.serving.doors import Doors
from patternlake.sql_ext.serving.query_log import QueryLog
from patternlake.sql_ext.session import session
from patternlake.udfs.errors import StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_KEY = re.compile(
    r"secret|password|token|credential|access[.]?key|account[.]key|encryption[.]key|provided-key|[.]sas[.]|auth|bindpw",
    re.IGNORECASE,
)
_CLASS_PATH = "spark.driver.extraClassPath"
_DEFAULT_DATABASE = "spark.sql.catalog.spark_catalog.defaultDatabase"
_BY_PATH = "table_changes_by_path"
_RUNNING_ALREADY = ("PYSPARK_GATEWAY_PORT", "DATABRICKS_RUNTIME_VERSION", "SPARK_REMOTE")


class Server:
    """Spark, with its two doors open.

    Attributes
    ----------
    spark
        The session that all others come from.
    database
        That of every session.
    doors
        Where it listens.
    """

    def __init__(self, spark: SparkSession, database: str, doors: Doors) -> None:
        self.spark = spark
        self.database = database
        self.doors = doors
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._queries = QueryLog()
        self._stopping = Lock()
        self._stopped = False
        gateway: Any = spark.sparkContext._gateway
        java_classes.define(jvm, gateway)
        self._classes = jvm.patternlake
        self._hide_keys()
        self._set_properties()
        if not doors.allow_writes:
            self._refuse_writes()
        self._thrift = self._open_thrift()
        self._connect = self._open_connect()

    def _set_properties(self) -> None:
        # Hive's own classes for authentication look for their settings here, and nowhere else.
        properties = self._jvm.java.lang.System
        for name, value in self.doors.hive_settings.items():
            properties.setProperty(name, value)
        if self.doors.password_file is not None:
            properties.setProperty(self._classes.PasswordFile.PROPERTY, str(self.doors.password_file.resolve()))
            self._classes.PasswordFile.tell(self._queries)

    def _hide_keys(self) -> None:
        """Take keys of stores out of the settings that clients can ask for; Hadoop has them in its own by now."""
        session: Any = self.spark._jsparkSession
        context: Any = self.spark.sparkContext._jsc.sc()
        settings = (context.conf(), session.sharedState().conf())
        for name in [pair._1() for pair in context.conf().getAll()]:
            if name.startswith("spark.hadoop.") and _KEY.search(name):
                for some in settings:
                    some.remove(name)
                session.sessionState().conf().unsetConf(name)

    def _refuse_writes(self) -> None:
        """Have each session that is made from here on refuse what is not reading."""
        classes, catalyst = self._classes, self._jvm.org.apache.spark.sql.catalyst
        extensions = self.spark._jsparkSession.extensions()
        extensions.injectCheckRule(classes.ReadingRule())
        # Delta's, which reads any table of files; analysed, it looks like a table of the catalogue.
        name, info = catalyst.FunctionIdentifier(_BY_PATH), catalyst.expressions.ExpressionInfo(_BY_PATH, _BY_PATH)
        extensions.injectTableFunction(self._jvm.scala.Tuple3(name, info, classes.RefusedFunction(_BY_PATH)))

    def _open_thrift(self) -> Any:
        jvm, session = self._jvm, self.spark._jsparkSession
        server = jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
        started = server.startWithContext(session.sqlContext())
        self._sql, self._thrift_service = started.getServices().toArray()
        sessions = self._classes.ThriftSessions(self._sql.getSessionManager())
        context = self.spark.sparkContext._jsc.sc()
        companion = getattr(getattr(jvm.org.apache.spark.sql.hive.thriftserver, "HiveThriftServer2$"), "MODULE$")
        setter = getattr(companion, "eventManager_$eq")
        setter(self._classes.ThriftQueries(context, sessions, not self.doors.allow_writes, self._queries))
        doorway = None
        if self._through_sockets:
            doorway = self._classes.Doorway.before(self._thrift_service)
            self._classes.Doorway.knock(self.doors.host, self.doors.port)
        self._watch = self._classes.Watch(doorway, sessions, self.doors.password_file is not None).begin()
        return started

    @property
    def _through_sockets(self) -> bool:
        """Whether Hive's protocol goes through connections of its own; else through HTTP."""
        return bool(self._thrift_service.getClass().getSimpleName() == "ThriftBinaryCLIService")

    def _open_connect(self) -> Any:
        context = self.spark.sparkContext._jsc.sc()
        context.addSparkListener(self._classes.ConnectQueries(self._queries))
        service = self._jvm.org.apache.spark.sql.connect.service
        found = getattr(getattr(service, "SparkConnectService$"), "MODULE$")
        found.start(context)
        return found

    @property
    def alive(self) -> bool:
        """Whether Spark's JVM still runs."""
        process = getattr(self.spark.sparkContext._gateway, "proc", None)
        return process is None or process.poll() is None

    @property
    def addresses(self) -> list[str]:
        """How each door is reached."""
        host = f"[{self.doors.host}]" if ":" in self.doors.host else self.doors.host
        return [
            f"JDBC: jdbc:hive2://{host}:{self.doors.port}/{self.database}",
            f"Spark Connect: sc://{host}:{self.doors.connect_port}",
        ]

    def close_doors(self) -> None:
        """Take no more connections.

        Clients that are connected by Hive's protocol may go on to ask, those of Spark Connect may not. Where Hive's
        protocol goes through HTTP, which makes connections for each call, that door stays open until `stop`.
        """
        if self._through_sockets:
            self._classes.ShutDoor.shut(self._thrift_service)
        self._connect.server().shutdown()

    def drain(self, seconds: float, cut: Event | None = None) -> int:
        """Wait until what runs is done, and its rows are fetched.

        Parameters
        ----------
        seconds
            For so long at the most.
        cut
            Ends the wait when it is set.

        Returns
        -------
        int
            How many queries are still at work.
        """
        return self._queries.wait(seconds, cut)

    def stop(self) -> None:
        """Close both doors, cut what still runs, and stop Spark; idempotent."""
        with self._stopping:
            if self._stopped:
                return
            self._stopped = True
        if self.alive:
            self._watch.cancel()
            none = self._jvm.scala.Option.empty()
            self._connect.stop(none, none)
            self._thrift.stop()
            self.spark.stop()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def serve(
    location: str | None,
    database: str,
    doors: Doors,
    *,
    master: str = "local[*]",
    storage_options: Mapping[str, str] | None = None,
) -> Server:
    """Start a local Spark with the functions, and open it to others.

    Every session that a client opens has the functions, which answer from the database; the database is its current
    one, unless the client names another.

    Parameters
    ----------
    location
        Folder (or object-store path) of the tables; None: the catalog's own place.
    database
        Name under which the views are registered.
    doors
        Where to listen, and what guards it.
    master
        Spark's master URL.
    storage_options
        As for `enable`.

    Raises
    ------
    ArgumentError
        As of `Doors.check`.
    StateError
        A session runs in this process already, or as for `session`.
    """
    from pyspark import SparkContext

    doors = doors.check()
    if SparkContext._gateway is not None or any(os.environ.get(name) for name in _RUNNING_ALREADY):
        raise StateError(
            "a Spark runs in this process already, and what a server needs can be set at its start only; serve from a "
            "process of its own: patternlake serve"
        )
    settings = doors.spark_settings
    given = settings.get(_CLASS_PATH)
    settings[_CLASS_PATH] = os.pathsep.join(filter(None, [class_path(settings), given]))
    spark = session(location, master, database=database, settings=settings, storage_options=storage_options)
    try:
        # Sessions that are made from here on begin in the database, which was not there when Spark started.
        shared: Any = spark._jsparkSession
        shared.sharedState().conf().set(_DEFAULT_DATABASE, database)
        return Server(spark, database, doors)
    except BaseException:
        spark.stop()
        raise
