package patternlake;

import org.apache.spark.QueryContext;
import org.apache.spark.SparkRuntimeException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import scala.collection.immutable.Map;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Spark's check of each analysed plan: refuses what `Reading` refuses. By a session, it gives itself. */
public class ReadingRule extends AbstractFunction1 {
    public Object apply(Object given) {
        if (given instanceof SparkSession) {
            return this;
        }
        QueryPlan plan = (QueryPlan) given;
        String refused = Reading.refused(plan, false);
        if (refused != null && (!isOurs() || Reading.refused(plan, true) != null)) {
            throw error(refused);
        }
        return BoxedUnit.UNIT;
    }

    /** The error that a client sees. */
    public static SparkRuntimeException error(String message) {
        Map parameters = (Map) scala.collection.immutable.Map$.MODULE$.empty();
        parameters = (Map) parameters.updated("errorMessage", message);
        return new SparkRuntimeException("USER_RAISED_EXCEPTION", parameters, null, new QueryContext[0], "");
    }

    /** Whether this process' Python made the plan, as functions do while a client's is analysed. */
    private static boolean isOurs() {
        StackTraceElement[] stack = Thread.currentThread().getStackTrace();
        for (int number = 0; number < stack.length; number++) {
            if (stack[number].getClassName().startsWith("py4j.reflection.")) {
                return true;
            }
        }
        return false;
    }
}
