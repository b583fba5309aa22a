package patternlake;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import org.apache.hive.service.cli.HiveSQLException;
import org.apache.hive.service.cli.session.HiveSession;
import org.apache.spark.sql.connect.service.SessionHolderInfo;
import org.apache.spark.sql.connect.service.SparkConnectService$;
import org.apache.spark.sql.connect.service.SparkConnectSessionManager;
import scala.jdk.javaapi.CollectionConverters;

/** Looks each second who has come in and who may stay: connections that take too long on their way in are closed, and
 *  sessions of users end whose line of the password file is another by now, or gone. */
public class Watch extends TimerTask {
    private static final long PAUSE = 1000;
    private final Doorway doorway;
    private final ThriftSessions sessions;
    private final boolean passwords;
    /** The hash that each session came in by. */
    private Map before = new HashMap();
    /** Sessions whose hash was another one at the last look. While the file is written, it may be cut short. */
    private Map doubtful = new HashMap();

    /** A doorway may be null: there is none. */
    public Watch(Doorway doorway, ThriftSessions sessions, boolean passwords) {
        this.doorway = doorway;
        this.sessions = sessions;
        this.passwords = passwords;
    }

    public Timer begin() {
        Timer timer = new Timer("patternlake-watch", true);
        timer.schedule(this, PAUSE, PAUSE);
        return timer;
    }

    public void run() {
        if (this.doorway != null) {
            this.doorway.sweep();
        }
        if (this.passwords) {
            this.look();
        }
    }

    private void look() {
        Map hashes = PasswordFile.hashes();
        Map known = new HashMap();
        Map doubted = new HashMap();
        Iterator thrift = this.sessions.all().iterator();
        while (thrift.hasNext()) {
            HiveSession one = (HiveSession) thrift.next();
            if (this.isOver(one.getSessionHandle(), (String) hashes.get(one.getUserName()), known, doubted)) {
                this.end(one);
            }
        }
        SparkConnectSessionManager connect = SparkConnectService$.MODULE$.sessionManager();
        Iterator others = CollectionConverters.asJava(connect.listActiveSessions()).iterator();
        while (others.hasNext()) {
            SessionHolderInfo one = (SessionHolderInfo) others.next();
            if (this.isOver(one.key(), (String) hashes.get(one.userId()), known, doubted)) {
                connect.closeSession(one.key(), false);
            }
        }
        this.before = known;
        this.doubtful = doubted;
    }

    private boolean isOver(Object session, String hash, Map known, Map doubted) {
        Object first = this.before.containsKey(session) ? this.before.get(session) : hash;
        known.put(session, first);
        if (hash != null && hash.equals(first)) {
            return false;
        }
        doubted.put(session, session);
        return this.doubtful.containsKey(session);
    }

    private void end(HiveSession one) {
        try {
            this.sessions.manager().closeSession(one.getSessionHandle());
        } catch (HiveSQLException error) {
            // Its client has closed it meanwhile.
        }
    }
}
