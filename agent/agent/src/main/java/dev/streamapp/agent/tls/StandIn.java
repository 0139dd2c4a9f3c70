package dev.streamapp.agent.tls;

import java.io.ByteArrayInputStream;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Signature;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.ECGenParameterSpec;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;

/**
 * Makes a certificate that says nothing, for an agent that has none.
 *
 * <p>The kubelet asks the readiness probe over TLS and does not look at the certificate. With the stand-in it gets its answer, so a missing Secret makes no
 * pod unready. The operator trusts no stand-in: it sends no request, and reports the pod.
 */
final class StandIn {

    private static final byte[] VERSION_3 = {2};
    private static final byte[] SERIAL_NUMBER = {1};
    private static final Duration VALIDITY = Duration.ofDays(3650);
    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("yyyyMMddHHmmss'Z'").withZone(ZoneOffset.UTC);

    private StandIn() {
    }

    static Identity make() throws GeneralSecurityException {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
        generator.initialize(new ECGenParameterSpec("secp256r1"));
        KeyPair pair = generator.generateKeyPair();
        // 1.2.840.10045.4.3.2, ecdsa-with-SHA256.
        byte[] algorithm = Der.sequence(Der.identifier(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
        // 2.5.4.3, commonName.
        byte[] name = Der.sequence(Der.set(Der.sequence(Der.identifier(0x55, 0x04, 0x03), Der.text("streamapp-agent without a certificate"))));
        Instant now = Instant.now();
        byte[] validity = Der.sequence(Der.time(TIME.format(now.minus(Duration.ofDays(1)))), Der.time(TIME.format(now.plus(VALIDITY))));
        byte[] content = Der.sequence(Der.explicit0(Der.integer(VERSION_3)), Der.integer(SERIAL_NUMBER), algorithm, name, validity, name,
                                      pair.getPublic().getEncoded());
        Signature signature = Signature.getInstance("SHA256withECDSA");
        signature.initSign(pair.getPrivate());
        signature.update(content);
        byte[] whole = Der.sequence(content, algorithm, Der.bits(signature.sign()));
        X509Certificate certificate = (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(whole));
        return new Identity(new X509Certificate[] {certificate}, pair.getPrivate());
    }
}
