package patternlake;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.runtime.AbstractPartialFunction;

/** Puts a plan in the place of the leaf that stood in for it. */
public class StandIn extends AbstractPartialFunction {
    private final LogicalPlan leaf;
    private final LogicalPlan plan;

    private StandIn(LogicalPlan leaf, LogicalPlan plan) {
        this.leaf = leaf;
        this.plan = plan;
    }

    public static LogicalPlan replaced(LogicalPlan whole, LogicalPlan leaf, LogicalPlan plan) {
        return (LogicalPlan) whole.transformDown(new StandIn(leaf, plan));
    }

    public boolean isDefinedAt(Object node) {
        return this.leaf.equals(node);
    }

    public Object apply(Object node) {
        return this.plan;
    }
}
