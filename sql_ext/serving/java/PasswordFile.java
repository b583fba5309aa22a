package patternlake;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.security.sasl.AuthenticationException;
import org.apache.commons.codec.digest.Crypt;
import org.apache.hive.service.auth.PasswdAuthenticationProvider;

/** Passwords of people, as a file of lines `name:hash` has them; it is read anew for each check.
 *
 *  Whoever is not let in yet must not keep the server at work, nor learn who else is: passwords have a greatest length,
 *  few are checked at once, the others wait for a while only, and a name that is not there costs what one costs that is. */
public class PasswordFile implements PasswdAuthenticationProvider {
    public static final String PROPERTY = "patternlake.passwordFile";
    /** Bytes of a name, and of a password: hashing takes time by its length. */
    private static final int LONGEST = 1024;
    /** Rounds of a hash: half a second. `patternlake serve` does not start with more. */
    private static final int MOST_ROUNDS = 1000000;
    private static final Pattern ROUNDS = Pattern.compile("\\$[56]\\$rounds=(\\d{1,9})\\$.*");
    private static final int SECONDS = 5;
    private static final Semaphore CHECKS = new Semaphore(Math.max(1, Runtime.getRuntime().availableProcessors() / 2), true);
    /** Checked in the place of a hash where the file has none. */
    private static final String NOBODYS = "$6$nobodysalt$";

    /** SHA-256 of the password that a hash was last found to be of: hashing it costs milliseconds, each call of
     *  Connect is checked, and memory holds the password of each call anyway. */
    private static final ConcurrentHashMap FOUND = new ConcurrentHashMap();

    private static volatile Consumer hearer;

    public void Authenticate(String user, String password) throws AuthenticationException {
        if (!knows("jdbc", user, password)) {
            throw new AuthenticationException("no such name and password");
        }
    }

    /** Tell of refused logins from here on. */
    public static void tell(Consumer to) {
        hearer = to;
    }

    /** Whether a password is a user's, who comes by a door. */
    public static boolean knows(String door, String user, String password) {
        boolean right = isOfUser(user, password);
        Consumer to = hearer;
        if (!right && to != null) {
            new Told(door, "refused", null, System.currentTimeMillis()).with("user", user).to(to);
        }
        return right;
    }

    private static boolean isOfUser(String user, String password) {
        if (user == null || password == null || user.length() > LONGEST || password.length() > LONGEST) {
            return false;
        }
        byte[] bytes = password.getBytes(StandardCharsets.UTF_8);
        if (bytes.length > LONGEST) {
            return false;
        }
        try {
            Map hashes = hashes();
            String hash = (String) hashes.get(user);
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(bytes);
            byte[] before = hash == null ? null : (byte[]) FOUND.get(hash);
            if (before != null && MessageDigest.isEqual(before, digest)) {
                return true;
            }
            boolean right = isOf(hash == null ? another(hashes, user) : hash, password) && hash != null;
            if (right) {
                FOUND.put(hash, digest);
            }
            return right;
        } catch (GeneralSecurityException error) {
            return false;
        }
    }

    /** Whether a hash is one of a password, if that can be told in time. */
    private static boolean isOf(String hash, String password) {
        try {
            if (!CHECKS.tryAcquire(SECONDS, TimeUnit.SECONDS)) {
                return false;
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return false;
        }
        try {
            byte[] computed = Crypt.crypt(password, hash).getBytes(StandardCharsets.UTF_8);
            return MessageDigest.isEqual(computed, hash.getBytes(StandardCharsets.UTF_8));
        } finally {
            CHECKS.release();
        }
    }

    /** A hash that is checked in the place of one that is not there: always the same for a name, as for one that is. */
    private static String another(Map hashes, String user) {
        ArrayList all = new ArrayList(hashes.values());
        return all.isEmpty() ? NOBODYS : (String) all.get(Math.floorMod(user.hashCode(), all.size()));
    }

    /** The hashes by name, as the file has them now; none where it cannot be read. */
    public static Map hashes() {
        Map found = new LinkedHashMap();
        try {
            Iterator lines = Files.readAllLines(Paths.get(System.getProperty(PROPERTY), new String[0])).iterator();
            while (lines.hasNext()) {
                String line = ((String) lines.next()).trim();
                int colon = line.indexOf(':');
                if (colon > 0 && !line.startsWith("#") && isQuick(line.substring(colon + 1))) {
                    found.putIfAbsent(line.substring(0, colon), line.substring(colon + 1));
                }
            }
        } catch (IOException error) {
            // Nobody is let in then.
            found.clear();
        }
        return found;
    }

    private static boolean isQuick(String hash) {
        Matcher rounds = ROUNDS.matcher(hash);
        boolean crypts = hash.startsWith("$5$") || hash.startsWith("$6$");
        return crypts && (!rounds.matches() || Integer.parseInt(rounds.group(1)) <= MOST_ROUNDS);
    }
}
