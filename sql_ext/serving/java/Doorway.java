package patternlake;

import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.concurrent.ThreadPoolExecutor;
import org.apache.hive.service.cli.thrift.ThriftBinaryCLIService;
import org.apache.thrift.server.TServer;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerTransport;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.TTransportException;
import org.apache.thrift.transport.TTransportFactory;

/** Keeps connections that say nothing from shutting others out. Hive's server has a thread for each connection: those
 *  that are on their way in may take few of them, the oldest goes for a new one, and none stays for long. */
public class Doorway extends TServerTransport {
    private static final int MOST = 100;
    private static final int SECONDS = 10;
    private final TServerTransport open;
    private final int most;
    private final LinkedHashSet entering = new LinkedHashSet();

    public Doorway(TServerTransport open, int most) {
        this.open = open;
        this.most = most;
    }

    /** Put one before a server's door. */
    public static Doorway before(ThriftBinaryCLIService service) throws ReflectiveOperationException {
        Object server = field(ThriftBinaryCLIService.class, "server").get(service);
        ThreadPoolExecutor threads = (ThreadPoolExecutor) field(TThreadPoolServer.class, "executorService_").get(server);
        Field transport = field(TServer.class, "serverTransport_");
        int most = Math.max(1, Math.min(MOST, threads.getMaximumPoolSize() / 2));
        Doorway doorway = new Doorway((TServerTransport) transport.get(server), most);
        transport.set(server, doorway);
        String[] factories = {"inputTransportFactory_", "outputTransportFactory_"};
        for (int number = 0; number < factories.length; number++) {
            Field factory = field(TServer.class, factories[number]);
            factory.set(server, new Handshakes((TTransportFactory) factory.get(server)));
        }
        return doorway;
    }

    /** Have a server's thread, which waits at the door that was there before, come to this one. */
    public static void knock(String host, int port) throws java.io.IOException {
        Socket one = new Socket();
        one.connect(new InetSocketAddress(host, port), SECONDS * 1000);
        one.close();
    }

    private static Field field(Class of, String name) throws NoSuchFieldException {
        Field found = of.getDeclaredField(name);
        found.setAccessible(true);
        return found;
    }

    public void listen() throws TTransportException {
        this.open.listen();
    }

    public TTransport accept() throws TTransportException {
        Entrance one = new Entrance(((TSocket) this.open.accept()).getSocket(), this);
        ArrayList late = new ArrayList();
        synchronized (this.entering) {
            this.entering.add(one);
            Iterator oldest = this.entering.iterator();
            for (int left = this.entering.size() - this.most; left > 0; left--) {
                late.add(oldest.next());
            }
        }
        closeAll(late);
        return one;
    }

    /** Close what has been on its way in for too long. */
    public void sweep() {
        ArrayList late = new ArrayList();
        synchronized (this.entering) {
            Iterator each = this.entering.iterator();
            while (each.hasNext()) {
                Entrance one = (Entrance) each.next();
                if (one.seconds() >= SECONDS) {
                    late.add(one);
                }
            }
        }
        closeAll(late);
    }

    /** Closing takes the server's thread from where it reads. */
    private static void closeAll(ArrayList connections) {
        Iterator each = connections.iterator();
        while (each.hasNext()) {
            ((Entrance) each.next()).close();
        }
    }

    public void forget(Entrance one) {
        synchronized (this.entering) {
            this.entering.remove(one);
        }
    }

    public void interrupt() {
        this.open.interrupt();
    }

    public void close() {
        this.open.close();
    }
}
