import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Statements through Flink SQL, on two slots of a cluster within this JVM: REPEATS STATEMENT... QUERY executes the
 * statements, and prints for each repeat of the query the seconds to its last row, and that row's first value.
 */
public final class FlinkPeer {
    private static final String SLOTS = "2";

    public static void main(String[] arguments) throws Exception {
        int repeats = Integer.parseInt(arguments[0]);
        int last = arguments.length - 1;
        TableEnvironment tables = TableEnvironment.create(EnvironmentSettings.inBatchMode());
        tables.getConfig().set("parallelism.default", SLOTS);
        // Else few bytes are taken for a reason to use one slot.
        tables.getConfig().set("execution.batch.adaptive.auto-parallelism.enabled", "false");
        tables.getConfig().set("taskmanager.memory.managed.size", "1g");
        for (int statement = 1; statement < last; statement++) {
            tables.executeSql(arguments[statement]).await();
        }
        for (int repeat = 0; repeat < repeats; repeat++) {
            long start = System.nanoTime();
            Object value = null;
            try (CloseableIterator<Row> rows = tables.executeSql(arguments[last]).collect()) {
                while (rows.hasNext()) {
                    value = rows.next().getField(0);
                }
            }
            System.out.println((System.nanoTime() - start) / 1e9 + " " + value);
        }
    }
}
