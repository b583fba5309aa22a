package patternlake;

import org.sparkproject.connect.grpc.ServerCall;

/** Hears nothing more of a call that was closed. */
public class RefusedCalls extends ServerCall.Listener {
}
