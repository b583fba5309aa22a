package patternlake;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.function.BiFunction;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.analysis.GeneralParameterizedQuery;
import org.apache.spark.sql.catalyst.analysis.NameParameterizedQuery$;
import org.apache.spark.sql.catalyst.analysis.PosParameterizedQuery;
import org.apache.spark.sql.catalyst.parser.HybridParameterContext;
import org.apache.spark.sql.catalyst.parser.NamedParameterContext;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.parser.PositionalParameterContext;
import org.apache.spark.sql.catalyst.plans.logical.CompoundBody;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;

/** A parser in front of another: statements that hold the word MATCH_RECOGNIZE are rewritten before that one reads
 *  them, all else is handed on as it is, and parameters reach the plan. Where a function is misspelt, it says which is
 *  meant. A proxy, as the methods of Spark's parsers differ from version to version. */
public class RowParser implements InvocationHandler {
    private static final Pattern WORD = Pattern.compile("match_recognize", Pattern.CASE_INSENSITIVE);
    /** Spark 4.2.0 mixes up more (SPARK-58341). */
    private static final int MOST_POSITIONAL = 4;
    private final ParserInterface next;
    private final BiFunction rewrite;
    private final Misspelt misspelt;
    private final SparkSession session;

    private RowParser(ParserInterface next, BiFunction rewrite, Misspelt misspelt, SparkSession session) {
        this.next = next;
        this.rewrite = rewrite;
        this.misspelt = misspelt;
        this.session = session;
    }

    /** `rewrite`: from the text of a statement, and its parameters or null, to what `Rewritten` takes; `session`:
     *  whose parser it is. */
    public static ParserInterface around(
            ParserInterface next, BiFunction rewrite, Misspelt misspelt, SparkSession session) {
        return (ParserInterface) Proxy.newProxyInstance(
                ParserInterface.class.getClassLoader(), new Class[] {ParserInterface.class},
                new RowParser(next, rewrite, misspelt, session));
    }

    /** Whether a parser is one of these. */
    public static boolean is(Object parser) {
        return Proxy.isProxyClass(parser.getClass()) && Proxy.getInvocationHandler(parser) instanceof RowParser;
    }

    /** The parser behind it. */
    public ParserInterface inner() {
        return this.next;
    }

    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        String name = method.getName();
        if (!name.equals("parsePlan") && !name.equals("parsePlanWithParameters") && !name.equals("parseQuery")) {
            return this.hand(method, arguments);
        }
        String text = (String) arguments[0];
        Object given = arguments.length > 1 ? arguments[1] : null;
        LogicalPlan read;
        if (WORD.matcher(text).find() || isMixedUp(given)) {
            Rewritten rewritten = new Rewritten(text, (String) this.rewrite.apply(text, given));
            arguments[0] = rewritten.text();
            try {
                read = (LogicalPlan) this.hand(method, arguments);
            } catch (ParseException error) {
                throw rewritten.of(error);
            }
            rewritten.place(read);
        } else {
            read = (LogicalPlan) this.hand(method, arguments);
        }
        // What a script calls may be made by an earlier one of its statements.
        if (!(read instanceof CompoundBody)) {
            this.misspelt.refuse(read, this.session);
        }
        return name.equals("parsePlanWithParameters") ? bind(read, given) : read;
    }

    private Object hand(Method method, Object[] arguments) throws Throwable {
        try {
            return method.invoke(this.next, arguments);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }

    /** Whether parameters may be in a wrong order, by now; the rewrite refuses them. */
    private static boolean isMixedUp(Object given) {
        return given instanceof PositionalParameterContext
                && ((PositionalParameterContext) given).params().size() > MOST_POSITIONAL;
    }

    /** The plan with its parameters, which Spark binds when it analyses it. Delta's parser drops them
     *  (delta-io/delta#7640). Spark's own has put them into the text by now: then there is none left to bind. */
    private static LogicalPlan bind(LogicalPlan plan, Object given) {
        if (plan instanceof CompoundBody) {
            return plan;  // Spark binds those of each of a script's statements
        }
        if (given instanceof NamedParameterContext) {
            NamedParameterContext named = (NamedParameterContext) given;
            return named.params().isEmpty() ? plan : NameParameterizedQuery$.MODULE$.apply(plan, named.params());
        }
        if (given instanceof PositionalParameterContext) {
            PositionalParameterContext positional = (PositionalParameterContext) given;
            return positional.params().isEmpty() ? plan : new PosParameterizedQuery(plan, positional.params());
        }
        HybridParameterContext both = (HybridParameterContext) given;  // of EXECUTE IMMEDIATE … USING
        return both.args().isEmpty() ? plan : new GeneralParameterizedQuery(plan, both.args(), both.paramNames());
    }
}
