package dev.streamapp.agent.tls;

import java.io.ByteArrayInputStream;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A certificate with its key.
 *
 * @param chain the certificate, then those that lead to its authority
 * @param key the key of the first certificate
 */
record Identity(X509Certificate[] chain, PrivateKey key) {

    private static final Pattern KEY = Pattern.compile("-----BEGIN ([A-Z ]*PRIVATE KEY)-----([^-]*)-----END \\1-----");
    private static final byte[] VERSION_0 = {0};

    /** The files are no certificate with its key. The message has the file, the cause and the next step. */
    static final class UnusableException extends Exception {
        private static final long serialVersionUID = 1L;

        UnusableException(String message) {
            super(message);
        }
    }

    /** Reads both texts, as cert-manager writes them. It checks that the key is that of the certificate. */
    static Identity of(byte[] certificates, String keyText) throws UnusableException {
        X509Certificate[] chain = chain(certificates);
        PublicKey publicKey = chain[0].getPublicKey();
        try {
            PrivateKey key = key(keyText, publicKey);
            if (!belongTogether(publicKey, key)) {
                throw new UnusableException("tls.key is not the key of the certificate in tls.crt; write both from one request");
            }
            return new Identity(chain, key);
        } catch (GeneralSecurityException | IllegalArgumentException e) {
            throw new UnusableException("tls.key cannot be used with an " + publicKey.getAlgorithm() + " certificate (" + e.getMessage()
                                                + "); write a PEM key, RSA or EC");
        }
    }

    private static X509Certificate[] chain(byte[] certificates) throws UnusableException {
        try {
            X509Certificate[] chain = CertificateFactory.getInstance("X.509").generateCertificates(new ByteArrayInputStream(certificates))
                    .toArray(new X509Certificate[0]);
            if (chain.length > 0) {
                return chain;
            }
            throw new UnusableException("tls.crt has no certificate; write PEM text");
        } catch (CertificateException | ArrayStoreException e) {
            throw new UnusableException("tls.crt cannot be read (" + e.getMessage() + "); write PEM text");
        }
    }

    private static PrivateKey key(String text, PublicKey publicKey) throws GeneralSecurityException, UnusableException {
        Matcher found = KEY.matcher(text);
        if (!found.find()) {
            throw new UnusableException("tls.key has no private key in PEM text; with openssl: `openssl pkcs8 -topk8 -nocrypt`");
        }
        byte[] content = Base64.getMimeDecoder().decode(found.group(2));
        byte[] pkcs8 = switch (found.group(1)) {
            case "PRIVATE KEY" -> content;
            // PKCS #1 and SEC 1: the key alone. Which algorithm it is for, and which curve, says the certificate.
            case "RSA PRIVATE KEY", "EC PRIVATE KEY" -> Der.sequence(Der.integer(VERSION_0), Der.firstOf(publicKey.getEncoded()), Der.octets(content));
            case "ENCRYPTED PRIVATE KEY" -> throw new UnusableException("tls.key has a password; write it without: `openssl pkcs8 -topk8 -nocrypt`");
            default -> throw new UnusableException("tls.key is a " + found.group(1) + "; write it as PKCS #8: `openssl pkcs8 -topk8 -nocrypt`");
        };
        return KeyFactory.getInstance(publicKey.getAlgorithm()).generatePrivate(new PKCS8EncodedKeySpec(pkcs8));
    }

    private static boolean belongTogether(PublicKey publicKey, PrivateKey key) throws GeneralSecurityException {
        Signature signature = Signature.getInstance(switch (publicKey.getAlgorithm()) {
            case "RSA" -> "SHA256withRSA";
            case "EC" -> "SHA256withECDSA";
            case "EdDSA" -> "EdDSA";
            default -> throw new InvalidKeySpecException("this kind of key is not known");
        });
        byte[] sample = publicKey.getEncoded();
        signature.initSign(key);
        signature.update(sample);
        byte[] signed = signature.sign();
        signature.initVerify(publicKey);
        signature.update(sample);
        return signature.verify(signed);
    }
}
