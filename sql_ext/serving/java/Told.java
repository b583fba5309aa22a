package patternlake;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;

/** Something that happened to a query, told to Python as JSON in one call. */
public class Told {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final Map fields = new HashMap();

    public Told(String door, String what, String query, long at) {
        this.fields.put("door", door);
        this.fields.put("what", what);
        this.fields.put("query", query);
        this.fields.put("at", Long.valueOf(at));
    }

    public Told with(String name, Object value) {
        this.fields.put(name, value);
        return this;
    }

    public void to(Consumer hearer) {
        try {
            hearer.accept(JSON.writeValueAsString(this.fields));
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
    }
}
