package patternlake;

import org.apache.spark.sql.catalyst.CurrentUserContext;
import org.sparkproject.connect.grpc.ForwardingServerCallListener;
import org.sparkproject.connect.grpc.ServerCall;

/** Requests that a client makes in any name, in the name of the user whose password it gave. */
public class CallsOfUser extends ForwardingServerCallListener {
    private final ServerCall.Listener next;
    private final String user;

    public CallsOfUser(ServerCall.Listener next, String user) {
        this.next = next;
        this.user = user;
    }

    protected ServerCall.Listener delegate() {
        return this.next;
    }

    public void onMessage(Object request) {
        this.next.onMessage(this.renamed(request));
    }

    /** Where a call is answered: `current_user()` is what the thread says that answers, and threads take over what those
     *  say that start them. */
    public void onHalfClose() {
        CurrentUserContext.CURRENT_USER().set(this.user);
        try {
            this.next.onHalfClose();
        } finally {
            CurrentUserContext.CURRENT_USER().remove();
        }
    }

    /** All requests of Connect have a user context; their classes have no interface in common that says so. */
    private Object renamed(Object request) {
        try {
            Object builder = call(request, "toBuilder");
            Object context = call(builder, "getUserContextBuilder");
            set(context, "setUserId", this.user);
            set(context, "setUserName", this.user);
            return call(builder, "build");
        } catch (Exception error) {
            throw new IllegalStateException(request.getClass().getName() + " has no user context", error);
        }
    }

    private static Object call(Object on, String method) throws Exception {
        return on.getClass().getMethod(method, new Class[0]).invoke(on, new Object[0]);
    }

    private static void set(Object on, String method, String value) throws Exception {
        on.getClass().getMethod(method, new Class[] {String.class}).invoke(on, new Object[] {value});
    }
}
