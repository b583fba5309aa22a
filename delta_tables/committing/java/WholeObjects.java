package patternlake;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/** Small files of Spark's and Delta's on S3: checksums of commits, and what a stream has read. Elsewhere they are written
 *  under another name and renamed, so that nobody sees half of one; on S3 that is a copy, and takes some fifteen requests.
 *  There an object is seen whole or not at all: it is held until it is complete, and put at once. */
public class WholeObjects extends FileSystemBasedCheckpointFileManager {
    private final Map held = new ConcurrentHashMap();

    public WholeObjects(Path path, Configuration configuration) {
        super(path, configuration);
    }

    public FSDataOutputStream createTempFile(Path path) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        held.put(path, bytes);
        return new FSDataOutputStream(bytes, null);
    }

    public void renameTempFile(Path from, Path to, boolean overwrite) throws IOException {
        byte[] whole = ((ByteArrayOutputStream) held.remove(from)).toByteArray();
        if (overwrite) {
            ConditionalCommits.put(fs(), to, whole, true);
            return;
        }
        try {
            ConditionalCommits.create(fs(), to, whole);
        } catch (java.nio.file.FileAlreadyExistsException rival) {
            throw new FileAlreadyExistsException(to.toString());
        }
    }

    public void delete(Path path) {
        if (held.remove(path) == null) {
            super.delete(path);
        }
    }
}
