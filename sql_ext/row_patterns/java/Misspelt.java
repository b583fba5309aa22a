package patternlake;

import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.Seq;
import scala.collection.immutable.Map;
import scala.jdk.javaapi.CollectionConverters;

/** Calls of functions that no session has, under a name that is close to one of ours: Spark would not say which is
 *  meant. Other functions are not looked up, and nothing is said of them. */
public class Misspelt {
    private static final int MOST_NAMES = 10_000;
    private final Set known = new HashSet();
    private final UnaryOperator suggest;
    /** From names that were called to what is meant by each, or to nothing: to ask Python takes longer than to parse. */
    private final java.util.Map meant = new ConcurrentHashMap();

    /** `known`: names of functions of ours; `suggest`: from a name that Spark does not know to the one of ours that is
     *  meant, or null. */
    public Misspelt(Collection known, UnaryOperator suggest) {
        this.known.addAll(known);
        this.suggest = suggest;
    }

    /** Throws for the first such call of a plan that was read, but not analysed. Parsers may throw no other error. */
    public void refuse(QueryPlan plan, SparkSession session) throws ParseException {
        if (plan instanceof UnresolvedTableValuedFunction) {
            this.look(((UnresolvedTableValuedFunction) plan).name(), plan, session);
        }
        if (mayCall(plan)) {
            Iterator expressions = list(plan.expressions());
            while (expressions.hasNext()) {
                this.refuse((Expression) expressions.next(), session);
            }
        }
        this.refuse(plan.children(), session);
        // The queries of WITH.
        this.refuse(plan.innerChildren(), session);
    }

    private void refuse(Seq plans, SparkSession session) throws ParseException {
        Iterator each = list(plans);
        while (each.hasNext()) {
            Object one = each.next();
            if (one instanceof QueryPlan) {
                this.refuse((QueryPlan) one, session);
            }
        }
    }

    private void refuse(Expression expression, SparkSession session) throws ParseException {
        if (!mayCall(expression)) {
            return;
        }
        if (expression instanceof UnresolvedFunction) {
            this.look(((UnresolvedFunction) expression).nameParts(), expression, session);
        }
        if (expression instanceof PlanExpression) {
            this.refuse(((PlanExpression) expression).plan(), session);
        }
        Iterator children = list(expression.children());
        while (children.hasNext()) {
            this.refuse((Expression) children.next(), session);
        }
    }

    /** Whether there are functions or queries in it: Spark marks each node with what is below, for its own rules. */
    private static boolean mayCall(TreeNode node) {
        return node.containsPattern(TreePattern.UNRESOLVED_FUNCTION())
                || node.containsPattern(TreePattern.PLAN_EXPRESSION());
    }

    private void look(Seq parts, TreeNode call, SparkSession session) throws ParseException {
        if (parts.size() != 1) {
            return;
        }
        String name = (String) parts.head();
        String meant = this.find(name.toLowerCase(Locale.ROOT));
        if (meant.isEmpty()) {
            return;
        }
        SessionCatalog catalog = session.sessionState().catalog();
        if (catalog.lookupBuiltinOrTempFunction(name).isEmpty()
                && catalog.lookupBuiltinOrTempTableFunction(name).isEmpty()
                && !isKept(name, session)) {
            throw error(name, meant, call.origin(), catalog);
        }
    }

    /** The function of ours that is meant by a name, if it is of none and close to one; else nothing. */
    private String find(String name) {
        if (this.known.contains(name)) {
            return "";
        }
        Object found = this.meant.get(name);
        if (found == null) {
            if (this.meant.size() >= MOST_NAMES) {
                this.meant.clear();
            }
            Object close = this.suggest.apply(name);
            found = close == null ? "" : close;
            this.meant.put(name, found);
        }
        return (String) found;
    }

    /** Whether a function of the name lasts in the current catalogue; also where that cannot tell, as Spark will. */
    private static boolean isKept(String name, SparkSession session) {
        try {
            return session.catalog().functionExists(name);
        } catch (Exception error) {
            return true;
        }
    }

    /** Spark's own error, with what is meant. */
    private static ParseException error(String name, String meant, Origin origin, SessionCatalog catalog) {
        Map parameters = (Map) scala.collection.immutable.Map$.MODULE$.empty();
        parameters = (Map) parameters.updated("routineName", "`" + name + "` (did you mean `" + meant + "`?)");
        parameters = (Map) parameters.updated("searchPath", "[`system`.`builtin`, `system`.`session`, `spark_catalog`.`"
                + catalog.getCurrentDatabase() + "`]");
        return new ParseException(origin.sqlText(), origin, "UNRESOLVED_ROUTINE", parameters);
    }

    private static Iterator list(Seq items) {
        return CollectionConverters.asJava(items).iterator();
    }
}
