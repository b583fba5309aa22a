package patternlake;

import java.net.Socket;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransportException;

/** A connection by Hive's protocol that is on its way in: it has not said who it is, or has said nothing at all. */
public class Entrance extends TSocket {
    /** Bytes of one message: a name and a password, and room. */
    private static final int LONGEST = 16384;
    private final Doorway doorway;
    private final long began = System.nanoTime();
    private final int longest;
    private boolean known;
    private boolean spoke;

    public Entrance(Socket socket, Doorway doorway) throws TTransportException {
        super(socket);
        this.doorway = doorway;
        // The memory for a message is taken when its length has come.
        this.longest = this.getConfiguration().getMaxMessageSize();
        this.getConfiguration().setMaxMessageSize(LONGEST);
    }

    public int read(byte[] into, int from, int length) throws TTransportException {
        int count = super.read(into, from, length);
        if (!this.spoke && count > 0) {
            this.spoke = true;
            this.let();
        }
        return count;
    }

    public void close() {
        super.close();
        this.doorway.forget(this);
    }

    /** It has said who it is, or need not. */
    public void know() {
        this.known = true;
        this.let();
    }

    public long seconds() {
        return (System.nanoTime() - this.began) / 1000000000L;
    }

    private void let() {
        if (this.known && this.spoke) {
            this.getConfiguration().setMaxMessageSize(this.longest);
            this.doorway.forget(this);
        }
    }
}
