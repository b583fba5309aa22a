package patternlake;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.function.BiFunction;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/** A parser in front of another: statements that hold the word MATCH_RECOGNIZE are rewritten before that one reads
 *  them, and all else is handed on as it is. A proxy, as the methods of Spark's parsers differ from version to version. */
public class RowParser implements InvocationHandler {
    private static final Pattern WORD = Pattern.compile("match_recognize", Pattern.CASE_INSENSITIVE);
    private final ParserInterface next;
    private final BiFunction rewrite;

    private RowParser(ParserInterface next, BiFunction rewrite) {
        this.next = next;
        this.rewrite = rewrite;
    }

    /** `rewrite`: from the text of a statement, and its parameters or null, to the text that the parser is to read. */
    public static ParserInterface around(ParserInterface next, BiFunction rewrite) {
        return (ParserInterface) Proxy.newProxyInstance(
                ParserInterface.class.getClassLoader(), new Class[] {ParserInterface.class}, new RowParser(next, rewrite));
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
        if (name.equals("parsePlan") || name.equals("parsePlanWithParameters") || name.equals("parseQuery")) {
            String text = (String) arguments[0];
            if (WORD.matcher(text).find()) {
                arguments[0] = this.rewrite.apply(text, arguments.length > 1 ? arguments[1] : null);
            }
        }
        try {
            return method.invoke(this.next, arguments);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }
}
