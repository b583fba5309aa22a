import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.EventSender;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Events of a file through Esper: FILE REPEATS EPL prints a line of seconds, matches, sum of first positions, sum of last
 * positions and bound B's for each repeat. All repeats share a JVM, so that the later ones run compiled.
 */
public final class EsperPeer {
    /** A line of the file. */
    public static final class Event {
        private final long position;
        private final int key;
        private final String name;
        private final double x;
        private final int rank;

        Event(String line) {
            String[] parts = line.split(",");
            position = Long.parseLong(parts[0]);
            key = Integer.parseInt(parts[1]);
            name = parts[2].intern();
            x = Double.parseDouble(parts[3]);
            rank = Integer.parseInt(parts[4]);
        }

        public long getPosition() {
            return position;
        }

        public int getKey() {
            return key;
        }

        public String getName() {
            return name;
        }

        public double getX() {
            return x;
        }

        public int getRank() {
            return rank;
        }
    }

    private long matches;
    private long first;
    private long last;
    private long bound;

    public static void main(String[] arguments) throws Exception {
        List<Event> events = read(Path.of(arguments[0]));
        for (int repeat = 0; repeat < Integer.parseInt(arguments[1]); repeat++) {
            new EsperPeer().run("peer" + repeat, arguments[2], events);
        }
    }

    private static List<Event> read(Path path) throws IOException {
        List<Event> events = new ArrayList<>();
        try (BufferedReader reader = Files.newBufferedReader(path)) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                events.add(new Event(line));
            }
        }
        return events;
    }

    private void run(String name, String epl, List<Event> events) throws Exception {
        Configuration configuration = new Configuration();
        configuration.getCommon().addEventType(Event.class);
        // Time plays no part, and its thread would take some of the cores.
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        EPCompiled compiled = EPCompilerProvider.getCompiler().compile(epl, new CompilerArguments(configuration));
        EPRuntime runtime = EPRuntimeProvider.getRuntime(name, configuration);
        EPStatement[] statements = runtime.getDeploymentService().deploy(compiled).getStatements();
        statements[statements.length - 1].addListener((found, old, statement, source) -> take(found));
        EventSender sender = runtime.getEventService().getEventSender("Event");
        long start = System.nanoTime();
        for (Event event : events) {
            sender.sendEvent(event);
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        System.out.println(seconds + " " + matches + " " + first + " " + last + " " + bound);
        runtime.destroy();
    }

    private void take(EventBean[] found) {
        for (EventBean row : found) {
            Map<?, ?> values = (Map<?, ?>) row.getUnderlying();
            matches++;
            first += (Long) values.get("f");
            last += (Long) values.get("l");
            bound += bound(values);
        }
    }

    /** How many B's a match binds: what it says, or those of its B's that rise. */
    private static long bound(Map<?, ?> values) {
        if (values.get("bound") instanceof Number number) {
            return number.longValue();
        }
        double top = Double.NEGATIVE_INFINITY;
        long kept = 0;
        if (values.get("opening") != null) {
            top = event(values.get("opening")).x;
            kept = 1;
        }
        Object[] collected = (Object[]) values.get("collected");
        for (Object value : collected == null ? new Object[0] : collected) {
            double x = event(value).x;
            if (x > top) {
                top = x;
                kept++;
            }
        }
        return kept;
    }

    private static Event event(Object value) {
        return (Event) (value instanceof EventBean bean ? bean.getUnderlying() : value);
    }
}
