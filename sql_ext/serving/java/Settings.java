package patternlake;

import java.util.Collection;
import java.util.Iterator;
import java.util.Locale;

/** Which settings a session may have of its own on a server that is only read: those that say how a question is
 *  computed. Others name classes, programs and places, such as spark.sql.catalog.… and fs.…. */
public class Settings {
    private static final String[] EXACT = {
        "spark.sql.ansi.enabled", "spark.sql.autoBroadcastJoinThreshold", "spark.sql.caseSensitive",
        "spark.sql.datetime.java8API.enabled", "spark.sql.legacy.timeParserPolicy", "spark.sql.mapKeyDedupPolicy",
        "spark.sql.shuffle.partitions", "spark.sql.thriftserver.scheduler.pool", "spark.sql.timestampType"
    };
    private static final String[] BEGINNINGS = {
        "spark.patternlake.", "spark.sql.adaptive.", "spark.sql.crossJoin.", "spark.sql.execution.arrow.",
        "spark.sql.pyspark.", "spark.sql.repl.", "spark.sql.session.", "spark.sql.thriftServer.", "hive.", "hivevar:"
    };

    /** How much of the server a question may take: that is up to whoever starts it. */
    private static final String[] BOUNDS = {
        "spark.patternlake.cacheBytes", "spark.patternlake.driverBytes", "spark.patternlake.maxTrendEvents",
        "spark.patternlake.partitionBytes", "spark.patternlake.rowPatternRows", "spark.patternlake.rowPatternSteps"
    };

    private Settings() {
    }

    /** Whether a session may set it. Names without a dot are variables. */
    public static boolean harmless(String name) {
        for (int number = 0; number < BOUNDS.length; number++) {
            if (BOUNDS[number].equalsIgnoreCase(name)) {
                return false;
            }
        }
        for (int number = 0; number < EXACT.length; number++) {
            if (EXACT[number].equalsIgnoreCase(name)) {
                return true;
            }
        }
        // Some of those that begin so name a class that Spark would make an object of. A client of JDBC brings Hive's.
        boolean ofClass = name.startsWith("spark.") && name.toLowerCase(Locale.ROOT).endsWith("class");
        for (int number = 0; number < BEGINNINGS.length && !ofClass; number++) {
            if (name.startsWith(BEGINNINGS[number])) {
                return true;
            }
        }
        return name.indexOf('.') < 0;
    }

    /** What is said of the first of these names that a session may not set; null: it may set all. */
    public static String refused(Collection names) {
        Iterator each = names.iterator();
        while (each.hasNext()) {
            String name = (String) each.next();
            if (!harmless(name)) {
                return Reading.refusal("the setting " + name);
            }
        }
        return null;
    }
}
