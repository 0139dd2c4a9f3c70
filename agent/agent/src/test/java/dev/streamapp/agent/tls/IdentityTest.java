package dev.streamapp.agent.tls;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.streamapp.agent.tls.Certificates.Pair;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which files are a certificate with its key, and what is said of those that are not. */
class IdentityTest {

    @TempDir
    private static Path folder;
    private static final Map<String, Pair> PAIRS = new HashMap<>();

    @BeforeAll
    static void make() throws IOException, InterruptedException, GeneralSecurityException {
        for (String algorithm : new String[] {"RSA", "EC", "Ed25519"}) {
            PAIRS.put(algorithm, Certificates.make(folder, algorithm, algorithm));
        }
    }

    private static Identity read(String certificates, String key) throws Identity.UnusableException {
        return Identity.of(certificates.getBytes(StandardCharsets.US_ASCII), key);
    }

    private static String refusal(String certificates, String key) {
        return assertThrows(Identity.UnusableException.class, () -> read(certificates, key)).getMessage();
    }

    @ParameterizedTest
    @ValueSource(strings = {"RSA", "EC", "Ed25519"})
    void aKeyInPkcs8IsRead(String algorithm) throws GeneralSecurityException, Identity.UnusableException {
        Pair pair = PAIRS.get(algorithm);
        Identity found = read(pair.certificatePem(), pair.keyPem());
        assertArrayEquals(new X509Certificate[] {pair.certificate()}, found.chain());
        assertArrayEquals(pair.key().getEncoded(), found.key().getEncoded());
    }

    @ParameterizedTest
    @ValueSource(strings = {"RSA", "EC"})
    void aKeyAsCertManagerWritesItByDefaultIsReadToo(String algorithm) throws GeneralSecurityException, Identity.UnusableException {
        Pair pair = PAIRS.get(algorithm);
        Identity found = read(pair.certificatePem(), "-----BEGIN EC PARAMETERS-----\nAAAA\n-----END EC PARAMETERS-----\n" + pair.traditionalKeyPem());
        assertArrayEquals(new X509Certificate[] {pair.certificate()}, found.chain());
        assertEquals(pair.key().getAlgorithm(), found.key().getAlgorithm());
    }

    @Test
    void theWholeChainIsKept() throws GeneralSecurityException, Identity.UnusableException {
        Pair leaf = PAIRS.get("EC");
        Pair authority = PAIRS.get("RSA");
        Identity found = read(leaf.certificatePem() + authority.certificatePem(), leaf.keyPem());
        assertArrayEquals(new X509Certificate[] {leaf.certificate(), authority.certificate()}, found.chain());
    }

    @Test
    void whatCannotBeUsedIsRefusedWithTheFix() throws GeneralSecurityException {
        Pair pair = PAIRS.get("EC");
        String certificate = pair.certificatePem();
        assertTrue(refusal("", pair.keyPem()).startsWith("tls.crt "), () -> refusal("", pair.keyPem()));
        assertTrue(refusal("no certificate", pair.keyPem()).startsWith("tls.crt "));
        assertEquals("tls.key has no private key in PEM text; with openssl: `openssl pkcs8 -topk8 -nocrypt`", refusal(certificate, ""));
        assertEquals("tls.key has a password; write it without: `openssl pkcs8 -topk8 -nocrypt`",
                     refusal(certificate, Certificates.pem("ENCRYPTED PRIVATE KEY", pair.key().getEncoded())));
        assertEquals("tls.key is a DSA PRIVATE KEY; write it as PKCS #8: `openssl pkcs8 -topk8 -nocrypt`",
                     refusal(certificate, Certificates.pem("DSA PRIVATE KEY", pair.key().getEncoded())));
        assertTrue(refusal(certificate, Certificates.pem("PRIVATE KEY", new byte[] {0x30, 0x03})).endsWith("; write a PEM key, RSA or EC"));
        assertTrue(refusal(certificate, PAIRS.get("RSA").keyPem()).contains("cannot be used with an EC certificate"));
    }

    @Test
    void theKeyOfAnotherCertificateIsRefused() throws IOException, InterruptedException, GeneralSecurityException {
        Pair other = Certificates.make(folder, "other", "EC");
        assertEquals("tls.key is not the key of the certificate in tls.crt; write both from one request",
                     refusal(PAIRS.get("EC").certificatePem(), other.keyPem()));
    }
}
