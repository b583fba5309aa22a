package patternlake;

import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.TTransportException;
import org.apache.thrift.transport.TTransportFactory;

/** Tells connections that their handshake is done, in which they have said who they are. */
public class Handshakes extends TTransportFactory {
    private final TTransportFactory handshakes;

    public Handshakes(TTransportFactory handshakes) {
        this.handshakes = handshakes;
    }

    public TTransport getTransport(TTransport connection) throws TTransportException {
        TTransport done = this.handshakes.getTransport(connection);
        if (connection instanceof Entrance) {
            ((Entrance) connection).know();
        }
        return done;
    }
}
