package patternlake;

import org.sparkproject.connect.grpc.ForwardingServerCallListener;
import org.sparkproject.connect.grpc.Metadata;
import org.sparkproject.connect.grpc.ServerCall;
import org.sparkproject.connect.grpc.Status;

/** Requests of a call, as far as a server that is only read takes them; a call with another one ends. */
public class ReadingCalls extends ForwardingServerCallListener {
    private final ServerCall call;
    private ServerCall.Listener next;

    public ReadingCalls(ServerCall call, ServerCall.Listener next) {
        this.call = call;
        this.next = next;
    }

    protected ServerCall.Listener delegate() {
        return this.next;
    }

    public void onMessage(Object request) {
        String refused = ReadingRequests.refused(request);
        if (refused == null) {
            this.next.onMessage(request);
            return;
        }
        this.next = new RefusedCalls();
        this.call.close(Status.PERMISSION_DENIED.withDescription(refused), new Metadata());
    }
}
