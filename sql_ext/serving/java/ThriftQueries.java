package patternlake;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.util.Iterator;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.hadoop.hive.ql.session.SessionState;
import org.apache.hive.service.cli.HiveSQLException;
import org.apache.hive.service.cli.operation.OperationManager;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.hive.thriftserver.SparkExecuteStatementOperation;
import org.apache.spark.sql.hive.thriftserver.ui.HiveThriftServer2EventManager;

/** Tells what becomes of each statement that comes through JDBC, in the statement's own thread; and has a look at the
 *  settings of a session that begins. */
public class ThriftQueries extends HiveThriftServer2EventManager {
    private static final String DOOR = "jdbc";
    private final ThriftSessions sessions;
    private final OperationManager operations;
    private final boolean reading;
    private final Consumer hearer;

    /** `reading`: whether the server is only read. */
    public ThriftQueries(SparkContext context, ThriftSessions sessions, boolean reading, Consumer hearer) {
        super(context);
        this.sessions = sessions;
        this.operations = sessions.manager().getOperationManager();
        this.reading = reading;
        this.hearer = hearer;
    }

    /** Settings that come with a session are no statement, which would be checked. */
    public void onSessionCreated(String address, String id, String user) {
        super.onSessionCreated(address, id, user);
        if (this.reading) {
            SessionState state = this.sessions.of(id).getSessionState();
            String refused = Settings.refused(state.getOverriddenConfigurations().keySet());
            refused = refused != null ? refused : Settings.refused(state.getHiveVariables().keySet());
            if (refused != null) {
                throw ReadingRule.error(refused);
            }
        }
    }

    public void onStatementStart(String id, String session, String statement, String group, String user) {
        super.onStatementStart(id, session, statement, group, user);
        this.told("started", id).with("user", user).with("statement", statement).to(this.hearer);
    }

    public void onStatementFinish(String id) {
        super.onStatementFinish(id);
        this.told("finished", id).with("rows", this.rows(id)).to(this.hearer);
    }

    /** Thrown from here, an error takes the place of the one that Spark would throw next. */
    public void onStatementError(String id, String message, String trace) throws HiveSQLException {
        super.onStatementError(id, message, trace);
        this.told("failed", id).to(this.hearer);
        PlainError plain = PlainError.of(message);
        if (plain != null) {
            throw plain;
        }
    }

    public void onStatementCanceled(String id) {
        super.onStatementCanceled(id);
        this.told("cancelled", id).to(this.hearer);
    }

    public void onStatementTimeout(String id) {
        super.onStatementTimeout(id);
        this.told("timed out", id).to(this.hearer);
    }

    public void onOperationClosed(String id) {
        super.onOperationClosed(id);
        this.told("closed", id).to(this.hearer);
    }

    private Told told(String what, String id) {
        return new Told(DOOR, what, id, System.currentTimeMillis());
    }

    /** How many rows a statement has, where they were collected; null where it has none, or they come one by one. */
    private Object rows(String id) {
        try {
            Field known = OperationManager.class.getDeclaredField("handleToOperation");
            known.setAccessible(true);
            synchronized (this.operations) {
                Iterator all = ((Map) known.get(this.operations)).values().iterator();
                while (all.hasNext()) {
                    Object one = all.next();
                    if (one instanceof SparkExecuteStatementOperation
                            && id.equals(((SparkExecuteStatementOperation) one).statementId())) {
                        return collected(one);
                    }
                }
            }
            return null;
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static Object collected(Object operation) throws ReflectiveOperationException {
        Field rows = SparkExecuteStatementOperation.class.getDeclaredField("iter");
        rows.setAccessible(true);
        Object found = rows.get(operation);
        if (found == null || !found.getClass().getSimpleName().equals("ArrayFetchIterator")) {
            return null;
        }
        Field source = found.getClass().getDeclaredField("src");
        source.setAccessible(true);
        return Integer.valueOf(Array.getLength(source.get(found)));
    }
}
