package patternlake;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hive.service.cli.HiveSQLException;

/** An error of a statement, of which clients are given the message alone: Hive's protocol has them shown the whole of
 *  an exception, with its stack. */
public class PlainError extends HiveSQLException {
    private static final Pattern OF_SPARK = Pattern.compile("\\[[A-Z0-9_.]+\\] .*?\\bSQLSTATE: (\\w{5})\\b.*", Pattern.DOTALL);
    private static final Pattern OURS =
            Pattern.compile("\\[USER_RAISED_EXCEPTION\\] (.*?)\\s*SQLSTATE: \\w{5}\\s*", Pattern.DOTALL);

    private PlainError(String message, String state) {
        super(message, state);
    }

    /** By an exception's message; null for one that is not written for people, whose stack may tell more. */
    public static PlainError of(String message) {
        // Spark's parser begins with a line break.
        message = message == null ? "" : message.strip();
        Matcher spark = OF_SPARK.matcher(message);
        if (!spark.matches()) {
            return null;
        }
        Matcher ours = OURS.matcher(message);
        return new PlainError(ours.matches() ? ours.group(1) : message, spark.group(1));
    }

    public Throwable fillInStackTrace() {
        return this;
    }

    public String toString() {
        return this.getMessage();
    }
}
