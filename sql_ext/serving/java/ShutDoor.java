package patternlake;

import java.lang.reflect.Field;
import java.util.concurrent.CountDownLatch;
import org.apache.hive.service.cli.thrift.ThriftBinaryCLIService;
import org.apache.thrift.server.TServer;
import org.apache.thrift.transport.TServerTransport;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.TTransportException;

/** Takes no connection until the server stops. Stopping the server itself would interrupt the queries that run. */
public class ShutDoor extends TServerTransport {
    private final CountDownLatch stopped = new CountDownLatch(1);

    /** Put one in the place of a server's door, and close that; connections that came through it live on. */
    public static void shut(ThriftBinaryCLIService service) throws ReflectiveOperationException {
        Field server = ThriftBinaryCLIService.class.getDeclaredField("server");
        server.setAccessible(true);
        Field transport = TServer.class.getDeclaredField("serverTransport_");
        transport.setAccessible(true);
        Object open = server.get(service);
        TServerTransport before = (TServerTransport) transport.get(open);
        transport.set(open, new ShutDoor());
        before.close();
    }

    public void listen() {
    }

    public TTransport accept() throws TTransportException {
        try {
            this.stopped.await();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
        throw new TTransportException("the server takes no connections");
    }

    public void interrupt() {
        this.stopped.countDown();
    }

    public void close() {
        this.stopped.countDown();
    }
}
