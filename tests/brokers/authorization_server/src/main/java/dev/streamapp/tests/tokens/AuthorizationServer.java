package dev.streamapp.tests.tokens;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Spring's authorization server, as it configures itself from the {@code application.yml} of its working directory. */
@SpringBootApplication(proxyBeanMethods = false)
public class AuthorizationServer {
    /** Run until SIGTERM. */
    public static void main(String[] args) {
        SpringApplication.run(AuthorizationServer.class, args);
    }
}
