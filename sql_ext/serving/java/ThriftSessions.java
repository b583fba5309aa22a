package patternlake;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hive.service.cli.session.HiveSession;
import org.apache.hive.service.cli.session.SessionManager;

/** The sessions that are open by Hive's protocol. */
public class ThriftSessions {
    private final SessionManager manager;

    public ThriftSessions(SessionManager manager) {
        this.manager = manager;
    }

    /** Each HiveSession. */
    public List all() {
        try {
            Field sessions = SessionManager.class.getDeclaredField("handleToSession");
            sessions.setAccessible(true);
            return new ArrayList(((Map) sessions.get(this.manager)).values());
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The session of an id, as Spark writes it; null: there is none. */
    public HiveSession of(String id) {
        Iterator each = this.all().iterator();
        while (each.hasNext()) {
            HiveSession one = (HiveSession) each.next();
            if (one.getSessionHandle().getSessionId().toString().equals(id)) {
                return one;
            }
        }
        return null;
    }

    public SessionManager manager() {
        return this.manager;
    }
}
