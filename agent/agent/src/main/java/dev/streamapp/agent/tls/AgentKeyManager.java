package dev.streamapp.agent.tls;

import dev.streamapp.agent.runtime.WarningLog;
import java.net.Socket;
import java.security.GeneralSecurityException;
import java.security.Principal;
import java.security.PrivateKey;
import java.security.cert.X509Certificate;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.X509ExtendedKeyManager;

/**
 * Gives each handshake the certificate of the moment.
 *
 * <p>JSSE asks for an alias first, and then for the key and the certificate of it. In between the files can change, so an alias names one version.
 */
final class AgentKeyManager extends X509ExtendedKeyManager {

    private final IdentityFolder folder;
    private Identity newest;
    private Identity former;
    private long version;

    AgentKeyManager(IdentityFolder folder) {
        this.folder = folder;
    }

    @Override
    public synchronized String chooseEngineServerAlias(String keyType, Principal[] issuers, SSLEngine engine) {
        try {
            Identity current = folder.current();
            if (current != newest) {
                former = newest;
                newest = current;
                version++;
            }
            return newest.key().getAlgorithm().equals(keyType) ? String.valueOf(version) : null;
        } catch (GeneralSecurityException e) {
            WarningLog.warn("TLS: no certificate can be made, so no request is answered", e);
            return null;
        }
    }

    @Override
    public X509Certificate[] getCertificateChain(String alias) {
        Identity identity = of(alias);
        return identity == null ? null : identity.chain().clone();
    }

    @Override
    public PrivateKey getPrivateKey(String alias) {
        Identity identity = of(alias);
        return identity == null ? null : identity.key();
    }

    private synchronized Identity of(String alias) {
        if (alias.equals(String.valueOf(version))) {
            return newest;
        }
        return alias.equals(String.valueOf(version - 1)) ? former : null;
    }

    @Override
    public String chooseServerAlias(String keyType, Principal[] issuers, Socket socket) {
        return chooseEngineServerAlias(keyType, issuers, null);
    }

    @Override
    public String[] getServerAliases(String keyType, Principal[] issuers) {
        String alias = chooseEngineServerAlias(keyType, issuers, null);
        return alias == null ? null : new String[] {alias};
    }

    @Override
    public String[] getClientAliases(String keyType, Principal[] issuers) {
        return null;
    }

    @Override
    public String chooseClientAlias(String[] keyTypes, Principal[] issuers, Socket socket) {
        return null;
    }
}
