package patternlake;

import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Locale;
import java.util.Set;
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
 *  meant. Of any other function nothing is said, and no more is done than to look it up. */
public class Misspelt {
    private final Set known = new HashSet();
    private final UnaryOperator suggest;

    /** `known`: names of functions of ours; `suggest`: from a name that Spark does not know to the one of ours that is
     *  meant, or null. */
    public Misspelt(Collection known, UnaryOperator suggest) {
        this.known.addAll(known);
        this.suggest = suggest;
    }

    /** Throws for the first such call of a plan that was read, but not analysed. Parsers may throw no other error. */
    public void refuse(QueryPlan plan, SparkSession session) throws ParseException {
        this.refuse(plan, session, new HashSet());
    }

    /** `seen`: names that were looked up. */
    private void refuse(QueryPlan plan, SparkSession session, Set seen) throws ParseException {
        if (plan instanceof UnresolvedTableValuedFunction) {
            this.look(((UnresolvedTableValuedFunction) plan).name(), plan, session, seen);
        }
        Iterator expressions = list(plan.expressions());
        while (expressions.hasNext()) {
            this.refuse((Expression) expressions.next(), session, seen);
        }
        this.refuse(plan.children(), session, seen);
        // The queries of WITH.
        this.refuse(plan.innerChildren(), session, seen);
    }

    private void refuse(Seq plans, SparkSession session, Set seen) throws ParseException {
        Iterator each = list(plans);
        while (each.hasNext()) {
            Object one = each.next();
            if (one instanceof QueryPlan) {
                this.refuse((QueryPlan) one, session, seen);
            }
        }
    }

    private void refuse(Expression expression, SparkSession session, Set seen) throws ParseException {
        // Spark marks each expression with what is below it, and keeps that for its own rules.
        boolean queries = expression.containsPattern(TreePattern.PLAN_EXPRESSION());
        if (!queries && !expression.containsPattern(TreePattern.UNRESOLVED_FUNCTION())) {
            return;
        }
        if (expression instanceof UnresolvedFunction) {
            this.look(((UnresolvedFunction) expression).nameParts(), expression, session, seen);
        }
        if (expression instanceof PlanExpression) {
            this.refuse(((PlanExpression) expression).plan(), session, seen);
        }
        Iterator children = list(expression.children());
        while (children.hasNext()) {
            this.refuse((Expression) children.next(), session, seen);
        }
    }

    private void look(Seq parts, TreeNode call, SparkSession session, Set seen) throws ParseException {
        if (parts.size() != 1) {
            return;
        }
        String name = (String) parts.head();
        SessionCatalog catalog = session.sessionState().catalog();
        if (!seen.add(name)
                || this.known.contains(name.toLowerCase(Locale.ROOT))
                || catalog.lookupBuiltinOrTempFunction(name).isDefined()
                || catalog.lookupBuiltinOrTempTableFunction(name).isDefined()) {
            return;
        }
        String meant = (String) this.suggest.apply(name);
        if (meant != null && !isKept(name, session)) {
            throw error(name, meant, call.origin(), catalog);
        }
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
