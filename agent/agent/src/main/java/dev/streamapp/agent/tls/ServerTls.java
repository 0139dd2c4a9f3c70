package dev.streamapp.agent.tls;

import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.Provider;
import java.security.Security;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;

/** TLS of the agent's server: TLS 1.2 and 1.3, with the certificate in a folder. */
public final class ServerTls {

    private static final String[] PROTOCOLS = {"TLSv1.3", "TLSv1.2"};

    private ServerTls() {
    }

    /**
     * Returns a context that presents the certificate in the folder, as it is at each handshake. It asks no client for a certificate.
     *
     * <p>It looks at the files once, so that a missing certificate is reported at once.
     */
    public static SSLContext context(Path folder) throws GeneralSecurityException {
        IdentityFolder identities = new IdentityFolder(folder, System::nanoTime);
        identities.current();
        // An application can put another provider first. It would be used with a key manager that it was not tried with.
        Provider jdk = Security.getProvider("SunJSSE");
        SSLContext context = jdk == null ? SSLContext.getInstance("TLS") : SSLContext.getInstance("TLS", jdk);
        KeyManager[] managers = {new AgentKeyManager(identities)};
        context.init(managers, null, null);
        return context;
    }

    /** Returns the parameters of each connection. */
    public static SSLParameters parameters(SSLContext context) {
        SSLParameters parameters = context.getDefaultSSLParameters();
        parameters.setProtocols(PROTOCOLS);
        return parameters;
    }
}
