package patternlake;

import org.sparkproject.connect.grpc.Metadata;
import org.sparkproject.connect.grpc.ServerCall;
import org.sparkproject.connect.grpc.ServerCallHandler;
import org.sparkproject.connect.grpc.ServerInterceptor;

/** Stands before a Spark Connect that is only read. */
public class ConnectReading implements ServerInterceptor {
    public ServerCall.Listener interceptCall(ServerCall call, Metadata headers, ServerCallHandler next) {
        return new ReadingCalls(call, next.startCall(call, headers));
    }
}
