package patternlake;

import java.util.function.Consumer;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.connect.service.SparkListenerConnectOperationCanceled;
import org.apache.spark.sql.connect.service.SparkListenerConnectOperationClosed;
import org.apache.spark.sql.connect.service.SparkListenerConnectOperationFailed;
import org.apache.spark.sql.connect.service.SparkListenerConnectOperationFinished;
import org.apache.spark.sql.connect.service.SparkListenerConnectOperationStarted;
import scala.Option;

/** Tells what becomes of each plan that comes through Spark Connect. */
public class ConnectQueries extends SparkListener {
    private static final String DOOR = "connect";
    private final Consumer hearer;

    public ConnectQueries(Consumer hearer) {
        this.hearer = hearer;
    }

    public void onOtherEvent(SparkListenerEvent event) {
        if (event instanceof SparkListenerConnectOperationStarted) {
            SparkListenerConnectOperationStarted one = (SparkListenerConnectOperationStarted) event;
            new Told(DOOR, "started", one.operationId(), one.eventTime())
                    .with("user", one.userId()).with("statement", one.statementText()).to(this.hearer);
        } else if (event instanceof SparkListenerConnectOperationFinished) {
            SparkListenerConnectOperationFinished one = (SparkListenerConnectOperationFinished) event;
            Option rows = one.producedRowCount();
            new Told(DOOR, "finished", one.operationId(), one.eventTime())
                    .with("rows", rows.isDefined() ? rows.get() : null).to(this.hearer);
        } else if (event instanceof SparkListenerConnectOperationFailed) {
            SparkListenerConnectOperationFailed one = (SparkListenerConnectOperationFailed) event;
            new Told(DOOR, "failed", one.operationId(), one.eventTime()).to(this.hearer);
        } else if (event instanceof SparkListenerConnectOperationCanceled) {
            SparkListenerConnectOperationCanceled one = (SparkListenerConnectOperationCanceled) event;
            new Told(DOOR, "cancelled", one.operationId(), one.eventTime()).to(this.hearer);
        } else if (event instanceof SparkListenerConnectOperationClosed) {
            SparkListenerConnectOperationClosed one = (SparkListenerConnectOperationClosed) event;
            new Told(DOOR, "closed", one.operationId(), one.eventTime()).to(this.hearer);
        }
    }
}
