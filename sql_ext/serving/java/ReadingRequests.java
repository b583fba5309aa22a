package patternlake;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import org.sparkproject.connect.protobuf.Descriptors;
import org.sparkproject.connect.protobuf.Message;

/** What a server that is only read refuses of a request of Spark Connect: what is not a question in SQL or of tables,
 *  and so does not come to be an analysed plan, or comes there too late. */
public class ReadingRequests {
    private static final String SPARK = "spark.connect.";
    /** What these messages may have. */
    private static final Map ALLOWED = new HashMap();
    /** What these may not have. */
    private static final Map REFUSED = new HashMap();
    private static final Set NAMES_OF_ARTIFACTS = new HashSet(Arrays.asList(new Object[] {
        "AddArtifactsRequest.SingleChunkArtifact.name", "AddArtifactsRequest.BeginChunkedArtifact.name"
    }));
    /** Rows of a client that are sent ahead of their plan. */
    private static final Pattern ROWS = Pattern.compile("cache/[0-9a-f]{64}");

    static {
        put(ALLOWED, "Command",
                "create_dataframe_view remove_cached_remote_relation_command sql_command");
        put(ALLOWED, "Catalog",
                "current_database set_current_database list_databases list_tables list_functions list_columns get_database "
                + "get_table get_function database_exists table_exists function_exists drop_temp_view is_cached cache_table "
                + "uncache_table refresh_table current_catalog set_current_catalog list_catalogs list_partitions list_views "
                + "get_table_properties get_create_table_string");
        put(REFUSED, "Plan", "compressed_operation");
        put(REFUSED, "Read", "data_source");
        put(REFUSED, "Relation",
                "map_partitions group_map co_group_map apply_in_pandas_with_state common_inline_user_defined_table_function "
                + "common_inline_user_defined_data_source ml_relation extension unknown");
        put(REFUSED, "Expression",
                "common_inline_user_defined_function typed_aggregate_expression extension");
    }

    private ReadingRequests() {
    }

    private static void put(Map fields, String message, String names) {
        fields.put(SPARK + message, new HashSet(Arrays.asList((Object[]) names.split(" "))));
    }

    /** Why a request is refused; null: it is not. */
    public static String refused(Object request) {
        return what((Message) request);
    }

    private static String what(Message message) {
        String kind = message.getDescriptorForType().getFullName();
        Iterator fields = message.getAllFields().entrySet().iterator();
        while (fields.hasNext()) {
            Map.Entry field = (Map.Entry) fields.next();
            String name = ((Descriptors.FieldDescriptor) field.getKey()).getName();
            String found = ofField(kind, name, field.getValue());
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    private static String ofField(String kind, String name, Object value) {
        Set allowed = (Set) ALLOWED.get(kind);
        Set refused = (Set) REFUSED.get(kind);
        if (allowed != null && !allowed.contains(name) || refused != null && refused.contains(name)) {
            return Reading.refusal("Spark Connect's " + name);
        }
        String field = kind.startsWith(SPARK) ? kind.substring(SPARK.length()) + "." + name : "";
        if (NAMES_OF_ARTIFACTS.contains(field) && !ROWS.matcher((String) value).matches()) {
            return Reading.refusal("the artifact " + value);
        }
        if (field.equals("CreateDataFrameViewCommand.is_global") && Boolean.TRUE.equals(value)) {
            return Reading.refusal("a view that other sessions see");
        }
        if (field.equals("ConfigRequest.Set.pairs")) {
            return Settings.refused(keys((List) value));
        }
        return field.equals("ConfigRequest.Unset.keys") ? Settings.refused((List) value) : inside(value);
    }

    private static List keys(List pairs) {
        List found = new ArrayList();
        Iterator each = pairs.iterator();
        while (each.hasNext()) {
            Message pair = (Message) each.next();
            found.add(pair.getField(pair.getDescriptorForType().findFieldByName("key")));
        }
        return found;
    }

    private static String inside(Object value) {
        if (value instanceof Message) {
            return what((Message) value);
        }
        String found = null;
        if (value instanceof List) {
            Iterator each = ((List) value).iterator();
            while (found == null && each.hasNext()) {
                found = inside(each.next());
            }
        }
        return found;
    }
}
