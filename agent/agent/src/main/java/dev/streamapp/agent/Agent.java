package dev.streamapp.agent;

import dev.streamapp.agent.announcement.AnnouncementState;
import dev.streamapp.agent.assignor.AssignorInstaller;
import dev.streamapp.agent.assignor.AssignorRounds;
import dev.streamapp.agent.config.Defaults;
import dev.streamapp.agent.instance.Instances;
import dev.streamapp.agent.instance.LeaveOnClose;
import dev.streamapp.agent.instrument.Hook;
import dev.streamapp.agent.instrument.KafkaTransformer;
import dev.streamapp.agent.instrument.Registry;
import dev.streamapp.agent.report.Health;
import dev.streamapp.agent.report.Prober;
import dev.streamapp.agent.report.Report;
import dev.streamapp.agent.runtime.WarningLog;
import dev.streamapp.agent.server.ReportServer;
import dev.streamapp.agent.server.TokenAuth;
import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Creates the parts of the agent and connects them. {@link dev.streamapp.agent.premain.Premain} calls it by name, before the application's main.
 */
public final class Agent {

    private Agent() {
    }

    /** Throws whatever keeps the agent from starting. The application then starts as if the agent were absent. */
    public static void start(Instrumentation instrumentation) throws ReflectiveOperationException, IOException {
        Settings settings = Settings.of(System.getenv());
        AnnouncementState announcementState = new AnnouncementState(System::nanoTime);
        AssignorRounds rounds = new AssignorRounds(System::nanoTime);
        AssignorInstaller assignor = new AssignorInstaller(instrumentation);
        Defaults defaults = new Defaults(settings.defaults(), assignor);
        Instances instances = new Instances(defaults);
        Prober prober = new Prober(instances::current);
        ReportServerStarter server = new ReportServerStarter(settings, prober, () -> new ReportServer.Parts(
                new TokenAuth(settings.tokenHashes()), prober, new Report(settings.podUid(), announcementState, rounds), instances,
                new Health(instances::all, System::nanoTime), announcementState));
        LeaveOnClose leaveOnClose = new LeaveOnClose(defaults, announcementState, instances);
        publish(Registry.open(instrumentation), announcementState, rounds, new Hook(new Hook.Parts(instances, defaults, leaveOnClose, assignor, server)));
        instrumentation.addTransformer(new KafkaTransformer());
    }

    /** Publishes the agent's functions to the assignor and the advices. The values use types of the JDK only. */
    private static void publish(Map<String, Object> registry, AnnouncementState announcementState, AssignorRounds rounds, Hook hook) {
        Supplier<Map<String, Object>> announcement = () -> announcementState.now().asMap();
        Consumer<Map<String, Object>> round = result -> {
            try {
                rounds.record(result);
            } catch (RuntimeException e) {
                WarningLog.warn("the assignor's word about its round is not taken", e);
            }
        };
        registry.put(Registry.ANNOUNCEMENT, announcement);
        registry.put(Registry.ROUND, round);
        registry.put(Hook.KEY, hook);
    }

    /** Starts the server once, after the first instance, on a thread of the agent. */
    private record ReportServerStarter(Settings settings, Prober prober, Supplier<ReportServer.Parts> parts, AtomicBoolean started) implements Runnable {

        ReportServerStarter(Settings settings, Prober prober, Supplier<ReportServer.Parts> parts) {
            this(settings, prober, parts, new AtomicBoolean());
        }

        @Override
        public void run() {
            if (started.compareAndSet(false, true) && settings.port().isPresent()) {
                if (settings.tokenHashes().isEmpty()) {
                    WarningLog.warn("STREAMAPP_AGENT_TOKEN_SHA256 is empty, the server stays off");
                } else {
                    prober.runLater(this::listen);
                }
            }
        }

        private void listen() {
            try {
                new ReportServer(settings.port().getAsInt(), parts.get());
            } catch (IOException e) {
                WarningLog.warn("the server stays off, port " + settings.port().getAsInt(), e);
            } catch (NoClassDefFoundError e) {
                WarningLog.warn("the server stays off, this Java runtime has no module jdk.httpserver");
            } catch (RuntimeException | LinkageError e) {
                WarningLog.warn("the server stays off", e);
            }
        }
    }
}
