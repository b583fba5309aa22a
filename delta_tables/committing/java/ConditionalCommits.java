package patternlake;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Commits on S3 that the store itself refuses where there is one of that number: of two drivers one is told so.
 *  The store that Delta has for S3 looks first and puts then, which keeps the threads of one driver apart. */
public class ConditionalCommits extends S3SingleDriverLogStore {
    private static final String CONDITION = "fs.option.create.conditional.overwrite";
    /** What Hadoop makes of a store's answer that the condition does not hold. */
    private static final String REFUSED = "RemoteFileChangedException";

    public ConditionalCommits(Configuration configuration) {
        super(configuration);
    }

    public void write(Path path, Iterator actions, Boolean overwrite, Configuration configuration) throws IOException {
        if (overwrite.booleanValue()) {
            super.write(path, actions, overwrite, configuration);
            return;
        }
        StringBuilder lines = new StringBuilder();
        while (actions.hasNext()) {
            lines.append((String) actions.next()).append('\n');
        }
        create(path.getFileSystem(configuration), path, bytes(lines.toString()));
    }

    /** Make an object where none is, or say that there is another. */
    public static void create(FileSystem store, Path path, byte[] wanted) throws IOException {
        try {
            put(store, path, wanted, false);
        } catch (IOException refused) {
            if (metAnother(store, path, wanted, refused)) {
                FileAlreadyExistsException rival = new FileAlreadyExistsException(path.toString());
                rival.initCause(refused);
                throw rival;
            }
        }
    }

    /** Put an object by one request; if it may not replace another, on condition that there is none. */
    public static void put(FileSystem store, Path path, byte[] wanted, boolean overwrite) throws IOException {
        FSDataOutputStreamBuilder builder = store.createFile(path);
        builder.overwrite(overwrite);
        builder.recursive();
        builder.opt("fs.s3a.create.performance", true);
        if (!overwrite) {
            builder.must(CONDITION, true);
        }
        OutputStream out = (OutputStream) builder.build();
        try {
            out.write(wanted);
        } finally {
            out.close();
        }
    }

    /** Whether the store heeds the condition: some that are made like S3 take it and replace what is there.
     *  The object stays, so that whoever comes later needs one try. */
    public static boolean heeded(FileSystem store, Path path) throws IOException {
        for (int tried = 0; tried < 2; tried++) {
            byte[] wanted = bytes(UUID.randomUUID().toString());
            try {
                put(store, path, wanted, false);
            } catch (IOException refused) {
                if (refused.getClass().getSimpleName().equals(REFUSED) || metAnother(store, path, wanted, refused)) {
                    return true;
                }
            }
        }
        return false;
    }

    /** Whether a put was refused as there is another object. Where the answer to a first try was lost, the second meets
     *  what the first has made; where there is none, it failed of something else. */
    private static boolean metAnother(FileSystem store, Path path, byte[] wanted, IOException refused)
            throws IOException {
        byte[] found = read(store, path);
        if (found == null) {
            throw refused;
        }
        return !Arrays.equals(found, wanted);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] read(FileSystem store, Path path) throws IOException {
        FSDataInputStream in;
        try {
            in = store.open(path);
        } catch (FileNotFoundException missing) {
            return null;
        }
        try {
            return in.readAllBytes();
        } finally {
            in.close();
        }
    }
}
