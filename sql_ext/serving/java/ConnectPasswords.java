package patternlake;

import org.sparkproject.connect.grpc.Metadata;
import org.sparkproject.connect.grpc.ServerCall;
import org.sparkproject.connect.grpc.ServerCallHandler;
import org.sparkproject.connect.grpc.ServerInterceptor;
import org.sparkproject.connect.grpc.Status;

/** Lets calls of Spark Connect in that bring `name:password` as their token. */
public class ConnectPasswords implements ServerInterceptor {
    private static final String SCHEME = "Bearer ";

    public ServerCall.Listener interceptCall(ServerCall call, Metadata headers, ServerCallHandler next) {
        Metadata.Key key = Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
        String given = (String) headers.get(key);
        int colon = given == null || !given.startsWith(SCHEME) ? -1 : given.indexOf(':');
        if (colon >= 0) {
            String user = given.substring(SCHEME.length(), colon);
            if (PasswordFile.knows("connect", user, given.substring(colon + 1))) {
                return new CallsOfUser(next.startCall(call, headers), user);
            }
        }
        call.close(Status.UNAUTHENTICATED.withDescription("a token NAME:PASSWORD of the password file is needed"), new Metadata());
        return new RefusedCalls();
    }
}
