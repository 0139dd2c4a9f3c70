package dev.streamapp.agent.tls;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.X509Certificate;
import java.security.interfaces.ECPrivateKey;
import java.security.interfaces.RSAPrivateCrtKey;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509TrustManager;

/** Certificates that the JDK's keytool makes, as PEM text and in a folder as a kubelet writes it. */
public final class Certificates {

    private static final String PASSWORD = "password";
    private static final int EC_BYTES = 32;

    private Certificates() {
    }

    /** A certificate of its own authority, with its key. */
    public record Pair(X509Certificate certificate, PrivateKey key) {

        public String certificatePem() throws GeneralSecurityException {
            return pem("CERTIFICATE", certificate.getEncoded());
        }

        public String keyPem() {
            return pem("PRIVATE KEY", key.getEncoded());
        }

        /** The key as cert-manager writes it by default: PKCS #1 or SEC 1. */
        public String traditionalKeyPem() {
            if (key instanceof RSAPrivateCrtKey rsa) {
                return pem("RSA PRIVATE KEY", Der.sequence(
                        Der.integer(new byte[] {0}), number(rsa.getModulus()), number(rsa.getPublicExponent()), number(rsa.getPrivateExponent()),
                        number(rsa.getPrimeP()), number(rsa.getPrimeQ()), number(rsa.getPrimeExponentP()), number(rsa.getPrimeExponentQ()),
                        number(rsa.getCrtCoefficient())));
            }
            byte[] scalar = ((ECPrivateKey) key).getS().toByteArray();
            byte[] fixed = new byte[EC_BYTES];
            int length = Math.min(scalar.length, EC_BYTES);
            System.arraycopy(scalar, scalar.length - length, fixed, EC_BYTES - length, length);
            return pem("EC PRIVATE KEY", Der.sequence(Der.integer(new byte[] {1}), Der.octets(fixed)));
        }

        private static byte[] number(java.math.BigInteger number) {
            return Der.integer(number.toByteArray());
        }

        /** A client that trusts this certificate alone. */
        public SSLContext trusting() throws GeneralSecurityException, IOException {
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(null, null);
            store.setCertificateEntry("one", certificate);
            TrustManagerFactory factory = TrustManagerFactory.getInstance("PKIX");
            factory.init(store);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, factory.getTrustManagers(), null);
            return context;
        }
    }

    /** Makes one for localhost; the algorithm is RSA, EC or Ed25519. */
    public static Pair make(Path folder, String name, String algorithm) throws IOException, InterruptedException, GeneralSecurityException {
        Path store = folder.resolve(name + ".p12");
        List<String> size = switch (algorithm) {
            case "RSA" -> List.of("-keysize", "2048");
            case "EC" -> List.of("-groupname", "secp256r1");
            default -> List.of();
        };
        List<String> command = new java.util.ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "keytool").toString(), "-genkeypair", "-alias", "one", "-keyalg", algorithm, "-dname", "CN=" + name,
                "-ext", "san=dns:localhost", "-validity", "2", "-keystore", store.toString(), "-storetype", "PKCS12", "-storepass", PASSWORD));
        command.addAll(size);
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (process.waitFor() != 0) {
            throw new IOException(said);
        }
        KeyStore made = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(store)) {
            made.load(in, PASSWORD.toCharArray());
        }
        return new Pair((X509Certificate) made.getCertificate("one"), (PrivateKey) made.getKey("one", PASSWORD.toCharArray()));
    }

    /** A client that trusts whatever is presented, as the kubelet's probe does. */
    public static SSLContext trustingAnything() throws GeneralSecurityException {
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, new TrustManager[] {new Blind()}, null);
        return context;
    }

    /** Writes both files as a kubelet does: a folder for each version, and a link that is replaced at once. */
    public static void mount(Path volume, String version, String certificate, String key) throws IOException {
        Path folder = Files.createDirectories(volume.resolve(".." + version));
        Files.writeString(folder.resolve("tls.crt"), certificate);
        Files.writeString(folder.resolve("tls.key"), key);
        Path link = Files.createSymbolicLink(volume.resolve("..data_tmp"), folder.getFileName());
        Files.move(link, volume.resolve("..data"), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        for (String file : List.of("tls.crt", "tls.key")) {
            if (!Files.exists(volume.resolve(file))) {
                Files.createSymbolicLink(volume.resolve(file), Path.of("..data", file));
            }
        }
    }

    static String pem(String label, byte[] content) {
        String text = Base64.getMimeEncoder(64, "\n".getBytes(StandardCharsets.US_ASCII)).encodeToString(content);
        return "-----BEGIN " + label + "-----\n" + text + "\n-----END " + label + "-----\n";
    }

    private static final class Blind extends javax.net.ssl.X509ExtendedTrustManager implements X509TrustManager {

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String authType) {
            throw new IllegalStateException(Arrays.toString(chain));
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String authType) {
            // Anything.
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String authType, java.net.Socket socket) {
            throw new IllegalStateException(Arrays.toString(chain));
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String authType, java.net.Socket socket) {
            // Anything.
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String authType, javax.net.ssl.SSLEngine engine) {
            throw new IllegalStateException(Arrays.toString(chain));
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String authType, javax.net.ssl.SSLEngine engine) {
            // Anything.
        }

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }
}
