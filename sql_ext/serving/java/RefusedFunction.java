package patternlake;

import scala.runtime.AbstractFunction1;

/** Stands in the place of a function that a server which is only read does not have. */
public class RefusedFunction extends AbstractFunction1 {
    private final String name;

    public RefusedFunction(String name) {
        this.name = name;
    }

    public Object apply(Object arguments) {
        throw ReadingRule.error(Reading.refusal(this.name));
    }
}
