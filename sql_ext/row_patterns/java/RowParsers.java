package patternlake;

import java.lang.reflect.Field;
import java.util.function.BiFunction;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SessionState;
import scala.runtime.AbstractFunction2;

/** Puts a `RowParser` in front of the parser of sessions: by a session and its parser, the new one. */
public class RowParsers extends AbstractFunction2 {
    private final BiFunction rewrite;
    private final Misspelt misspelt;

    public RowParsers(BiFunction rewrite, Misspelt misspelt) {
        this.rewrite = rewrite;
        this.misspelt = misspelt;
    }

    public Object apply(Object session, Object parser) {
        return RowParser.around(
                (ParserInterface) parser, this.rewrite, this.misspelt, (SparkSession) session);
    }

    /** For all sessions that will be made. */
    public void later(SparkSessionExtensions extensions) {
        extensions.injectParser(this);
    }

    /** For a session that is there, whose parser is chosen already. */
    public void now(SparkSession session) throws ReflectiveOperationException {
        SessionState state = session.sessionState();
        if (!RowParser.is(state.sqlParser())) {
            Field parser = SessionState.class.getDeclaredField("sqlParser");
            parser.setAccessible(true);
            parser.set(state, this.apply(session, state.sqlParser()));
        }
    }
}
