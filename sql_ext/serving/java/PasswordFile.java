package patternlake;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Iterator;
import java.util.concurrent.ConcurrentHashMap;
import javax.security.sasl.AuthenticationException;
import org.apache.commons.codec.digest.Crypt;
import org.apache.hive.service.auth.PasswdAuthenticationProvider;

/** Passwords of people, as a file of lines `name:hash` has them; it is read anew for each check. */
public class PasswordFile implements PasswdAuthenticationProvider {
    public static final String PROPERTY = "patternlake.passwordFile";

    /** SHA-256 of the password that a hash was last found to be of: hashing it costs milliseconds, each call of
     *  Connect is checked, and memory holds the password of each call anyway. */
    private static final ConcurrentHashMap FOUND = new ConcurrentHashMap();

    public void Authenticate(String user, String password) throws AuthenticationException {
        if (!knows(user, password)) {
            throw new AuthenticationException("no such name and password");
        }
    }

    public static boolean knows(String user, String password) {
        if (user == null || password == null) {
            return false;
        }
        try {
            String hash = hashOf(user);
            if (hash == null) {
                return false;
            }
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(password.getBytes(StandardCharsets.UTF_8));
            byte[] before = (byte[]) FOUND.get(hash);
            if (before != null && MessageDigest.isEqual(before, digest)) {
                return true;
            }
            byte[] computed = Crypt.crypt(password, hash).getBytes(StandardCharsets.UTF_8);
            if (!MessageDigest.isEqual(computed, hash.getBytes(StandardCharsets.UTF_8))) {
                return false;
            }
            FOUND.put(hash, digest);
            return true;
        } catch (IOException error) {
            return false;
        } catch (GeneralSecurityException error) {
            return false;
        }
    }

    private static String hashOf(String user) throws IOException {
        Iterator lines = Files.readAllLines(Paths.get(System.getProperty(PROPERTY), new String[0])).iterator();
        while (lines.hasNext()) {
            String line = ((String) lines.next()).trim();
            int colon = line.indexOf(':');
            if (colon > 0 && !line.startsWith("#") && line.substring(0, colon).equals(user)) {
                return line.substring(colon + 1);
            }
        }
        return null;
    }
}
