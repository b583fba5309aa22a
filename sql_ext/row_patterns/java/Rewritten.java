package patternlake;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.Field;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.Option;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** A statement as Spark's parser is to read it, and where its pieces stand in the user's text: errors show that one.
 *  Offsets are in characters of Unicode, as ANTLR's and Python's are. */
public class Rewritten {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final String original;
    private final String text;
    /** Of each piece: its offset in the text, its place in the original, and whether it stands there word by word. */
    private final List pieces;

    /** By the user's text, and what Python made of it. */
    public Rewritten(String original, String made) throws JsonProcessingException {
        this.original = original;
        Map read = (Map) JSON.readValue(made, Map.class);
        this.text = (String) read.get("text");
        this.pieces = (List) read.get("pieces");
    }

    public String text() {
        return this.text;
    }

    /** The same error about the user's text. */
    public ParseException of(ParseException error) {
        Origin start = error.start();
        boolean placed = start.line().isDefined() && start.startPosition().isDefined();
        Origin moved = placed ? this.at(this.place(offset(this.text, start)), start) : start;
        return new ParseException(
                Option.apply(this.original), moved, error.getCondition(), error.messageParameters());
    }

    /** Has the nodes of a plan, which was read from the text, know their places in the user's. */
    public void place(LogicalPlan plan) throws IllegalAccessException, NoSuchFieldException {
        Field origin = TreeNode.class.getDeclaredField("origin");
        origin.setAccessible(true);
        this.place((QueryPlan) plan, origin);
    }

    private void place(QueryPlan plan, Field origin) throws IllegalAccessException {
        this.place((TreeNode) plan, origin);
        Iterator expressions = list(plan.expressions());
        while (expressions.hasNext()) {
            this.place((Expression) expressions.next(), origin);
        }
        this.place(plan.children(), origin);
        // The queries of WITH.
        this.place(plan.innerChildren(), origin);
    }

    private void place(Seq plans, Field origin) throws IllegalAccessException {
        Iterator each = list(plans);
        while (each.hasNext()) {
            Object one = each.next();
            if (one instanceof QueryPlan) {
                this.place((QueryPlan) one, origin);
            }
        }
    }

    private void place(Expression expression, Field origin) throws IllegalAccessException {
        this.place((TreeNode) expression, origin);
        if (expression instanceof PlanExpression) {
            this.place(((PlanExpression) expression).plan(), origin);
        }
        Iterator children = list(expression.children());
        while (children.hasNext()) {
            this.place((Expression) children.next(), origin);
        }
    }

    private void place(TreeNode node, Field origin) throws IllegalAccessException {
        Origin of = node.origin();
        if (of.startIndex().isDefined() && of.sqlText().isDefined() && of.sqlText().get().equals(this.text)) {
            origin.set(node, this.at(this.place(((Integer) of.startIndex().get()).intValue()), of));
        }
    }

    /** An origin at an offset of the user's text. */
    private Origin at(int start, Origin of) {
        int size = this.original.codePointCount(0, this.original.length());
        int begin = this.original.offsetByCodePoints(0, Math.min(start, size));
        int line = 1;
        for (int at = this.original.indexOf('\n'); at >= 0 && at < begin; at = this.original.indexOf('\n', at + 1)) {
            line++;
        }
        int lineBegin = this.original.lastIndexOf('\n', begin - 1) + 1;
        int position = this.original.codePointCount(lineBegin, begin);
        Option stop = of.stopIndex();
        if (stop.isDefined()) {
            stop = Option.apply(Integer.valueOf(Math.max(start, this.place(((Integer) stop.get()).intValue()))));
        }
        return new Origin(
                Option.apply(Integer.valueOf(line)), Option.apply(Integer.valueOf(position)),
                Option.apply(Integer.valueOf(start)), stop, Option.apply(this.original), of.objectType(),
                of.objectName(), of.stackTrace(), of.pysparkErrorContext(), Option.empty());
    }

    /** The offset in the text of a line and a position in it. */
    private static int offset(String text, Origin of) {
        int begin = 0;
        for (int line = ((Integer) of.line().get()).intValue(); line > 1; line--) {
            begin = text.indexOf('\n', begin) + 1;
        }
        return text.codePointCount(0, begin) + ((Integer) of.startPosition().get()).intValue();
    }

    /** The place in the user's text of an offset of the text. */
    private int place(int offset) {
        int at = this.pieces.size() - 1;
        while (at > 0 && this.number(at, 0) > offset) {
            at--;
        }
        boolean copied = ((Boolean) ((List) this.pieces.get(at)).get(2)).booleanValue();
        return this.number(at, 1) + (copied ? offset - this.number(at, 0) : 0);
    }

    private int number(int piece, int place) {
        return ((Integer) ((List) this.pieces.get(piece)).get(place)).intValue();
    }

    private static Iterator list(Seq items) {
        return CollectionConverters.asJava(items).iterator();
    }
}
