package patternlake;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.CallMethodViaReflection;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.ScriptTransformation;
import org.apache.spark.sql.execution.command.CreateViewCommand;
import org.apache.spark.sql.execution.command.DropTableCommand;
import org.apache.spark.sql.execution.command.ResetCommand;
import org.apache.spark.sql.execution.command.SetCommand;
import scala.Option;
import scala.Tuple2;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** What a server that is only read refuses of an analysed plan: commands other than those that look or that change
 *  the session alone, and expressions that run what a client chooses. */
public class Reading {
    private static final Set COMMANDS = new HashSet(Arrays.asList(new Object[] {
        "CacheTable", "CacheTableAsSelect", "CreateVariable", "DropTempViewCommand", "DropVariable", "ExplainCommand",
        "RefreshTable", "RefreshTableCommand", "SetCatalogAndNamespace", "SetCatalogCommand", "SetNamespaceCommand",
        "SetVariable", "UncacheTable"
    }));

    private Reading() {
    }

    /** How a refusal is said. */
    public static String refusal(String what) {
        return what + " is refused: this server answers questions about what is there, and changes nothing; "
                + "patternlake serve --allow-writes lets sessions do all that Spark may";
    }

    /** Why a plan is refused; null: it is not. Of one that functions make, `ours`, what a client may have put into
     *  it: functions look at files and write, and run no code that is given to them. */
    public static String refused(QueryPlan plan, boolean ours) {
        String what = what(plan, ours);
        return what == null ? null : refusal(what);
    }

    private static String what(QueryPlan plan, boolean ours) {
        String found = of(plan, ours);
        Iterator expressions = list(plan.expressions());
        while (found == null && expressions.hasNext()) {
            found = what((Expression) expressions.next(), ours);
        }
        // A command keeps what it is about beside its children.
        found = found != null ? found : what(plan.children(), ours);
        return found != null ? found : what(plan.innerChildren(), ours);
    }

    private static String what(Seq plans, boolean ours) {
        String found = null;
        Iterator each = list(plans);
        while (found == null && each.hasNext()) {
            Object one = each.next();
            found = one instanceof QueryPlan ? what((QueryPlan) one, ours) : null;
        }
        return found;
    }

    private static String what(Expression expression, boolean ours) {
        if (expression instanceof CallMethodViaReflection) {
            return "a call of Java by reflection";
        }
        String found = expression instanceof PlanExpression ? what(((PlanExpression) expression).plan(), ours) : null;
        Iterator children = list(expression.children());
        while (found == null && children.hasNext()) {
            found = what((Expression) children.next(), ours);
        }
        return found;
    }

    private static String of(QueryPlan node, boolean ours) {
        if (node instanceof ScriptTransformation) {
            return "TRANSFORM";
        }
        if (ours) {
            return null;
        }
        String name = node.getClass().getSimpleName();
        if (name.equals("ResolvedTable") || name.equals("DescribeDeltaHistoryCommand")) {
            return ofTable(node);
        }
        if (name.startsWith("ResolvedPathBased")) {
            return "a path in the place of a table";
        }
        if (!(node instanceof Command) || name.startsWith("Show") || name.startsWith("Describe")) {
            return null;
        }
        if (node instanceof SetCommand) {
            Option pair = ((SetCommand) node).kv();
            // Without a value, it only tells.
            boolean tells = pair.isEmpty() || ((Option) ((Tuple2) pair.get())._2()).isEmpty();
            return tells ? null : ofSetting((String) ((Tuple2) pair.get())._1());
        }
        if (node instanceof ResetCommand) {
            Option setting = ((ResetCommand) node).config();
            return setting.isEmpty() ? null : ofSetting((String) setting.get());
        }
        if (node instanceof CreateViewCommand) {
            String kind = ((CreateViewCommand) node).viewType().toString();
            return kind.equals("LocalTempView") ? null : "a view that other sessions see";
        }
        return COMMANDS.contains(name) ? null : words(ofView(node) ? name.replace("Table", "View") : name);
    }

    /** Spark has one class for what drops tables and views. */
    private static boolean ofView(QueryPlan node) {
        return node instanceof DropTableCommand && ((DropTableCommand) node).isView();
    }

    /** What a command's class is about, as in SQL: DropTableCommand is DROP TABLE. */
    private static String words(String name) {
        String[][] others = {
            {"Command$", ""}, {"DataSource|Delta(?=Table)", ""}, {"Namespace", "Database"}, {"^AppendData$", "Insert"},
            {"^Overwrite.*", "InsertOverwrite"}, {"([a-z])([A-Z])", "$1 $2"}
        };
        for (int number = 0; number < others.length; number++) {
            name = name.replaceAll(others[number][0], others[number][1]);
        }
        return name.toUpperCase();
    }

    private static String ofSetting(String name) {
        return Settings.harmless(name) ? null : "the setting " + name;
    }

    /** A table of Delta's that is in no catalogue was named by its path; Delta's classes are in no class path here. */
    private static String ofTable(QueryPlan node) {
        Object table = call(node, "table");
        boolean delta = table.getClass().getSimpleName().equals("DeltaTableV2");
        return delta && ((Option) call(table, "catalogTable")).isEmpty() ? "a path in the place of a table" : null;
    }

    private static Object call(Object on, String method) {
        try {
            return on.getClass().getMethod(method, new Class[0]).invoke(on, new Object[0]);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static Iterator list(Seq items) {
        return CollectionConverters.asJava(items).iterator();
    }
}
