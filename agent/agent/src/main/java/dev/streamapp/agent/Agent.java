package dev.streamapp.agent;

import dev.streamapp.agent.announcement.Announcements;
import dev.streamapp.agent.assignor.AssignorClasses;
import dev.streamapp.agent.assignor.Rounds;
import dev.streamapp.agent.config.Defaults;
import dev.streamapp.agent.instance.Instances;
import dev.streamapp.agent.instance.Leaving;
import dev.streamapp.agent.instrument.Hook;
import dev.streamapp.agent.instrument.KafkaTransformer;
import dev.streamapp.agent.instrument.MeetingPlace;
import dev.streamapp.agent.report.Health;
import dev.streamapp.agent.report.Looker;
import dev.streamapp.agent.report.Report;
import dev.streamapp.agent.runtime.Complaints;
import dev.streamapp.agent.server.Doorkeeper;
import dev.streamapp.agent.server.ReportServer;
import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** The entry: {@code -javaagent:streamapp-agent.jar}. Wires the parts; whatever goes wrong, the application starts as if the agent were not there. */
public final class Agent {

    private Agent() {
    }

    /** Called by the JVM before the application's main. */
    public static void premain(String arguments, Instrumentation instrumentation) {
        try {
            start(Settings.of(System.getenv()), instrumentation);
        } catch (Throwable e) {
            // Nothing that an agent meets is worth an application that does not start.
            Complaints.say("the agent stays off", e);
        }
    }

    private static void start(Settings settings, Instrumentation instrumentation) throws ReflectiveOperationException, IOException {
        Announcements announcements = new Announcements(System::nanoTime);
        Rounds rounds = new Rounds(System::nanoTime);
        AssignorClasses assignor = new AssignorClasses(instrumentation);
        Defaults defaults = new Defaults(settings.defaults(), assignor);
        Instances instances = new Instances(defaults);
        Looker looker = new Looker(instances::current);
        ReportServerStart server = new ReportServerStart(settings, looker, () -> new ReportServer.Parts(
                new Doorkeeper(settings.tokenHashes()), looker, new Report(settings.podUid(), announcements, rounds), instances,
                new Health(instances::all, System::nanoTime), announcements));
        Leaving leaving = new Leaving(defaults, announcements, instances);
        publish(MeetingPlace.open(instrumentation), announcements, rounds, new Hook(new Hook.Parts(instances, defaults, leaving, assignor, server)));
        instrumentation.addTransformer(new KafkaTransformer());
    }

    /** Puts what others in this JVM look for into the place where all meet, in types of the JDK only. */
    private static void publish(Map<String, Object> place, Announcements announcements, Rounds rounds, Hook hook) {
        Supplier<Map<String, Object>> announcement = () -> announcements.now().bridged();
        Consumer<Map<String, Object>> round = told -> {
            try {
                rounds.tell(told);
            } catch (RuntimeException e) {
                Complaints.say("the assignor's word about its round is not taken", e);
            }
        };
        place.put(MeetingPlace.ANNOUNCEMENT, announcement);
        place.put(MeetingPlace.ROUND, round);
        place.put(Hook.KEY, hook);
    }

    /** Starts the server once, after the first instance, on the agent's own thread. */
    private record ReportServerStart(Settings settings, Looker looker, Supplier<ReportServer.Parts> parts, AtomicBoolean begun) implements Runnable {

        ReportServerStart(Settings settings, Looker looker, Supplier<ReportServer.Parts> parts) {
            this(settings, looker, parts, new AtomicBoolean());
        }

        @Override
        public void run() {
            if (begun.compareAndSet(false, true) && settings.port().isPresent()) {
                if (settings.tokenHashes().isEmpty()) {
                    Complaints.say("STREAMAPP_AGENT_TOKEN_SHA256 is empty, the server stays off");
                } else {
                    looker.later(this::listen);
                }
            }
        }

        private void listen() {
            try {
                new ReportServer(settings.port().getAsInt(), parts.get());
            } catch (IOException e) {
                Complaints.say("the server stays off, port " + settings.port().getAsInt(), e);
            } catch (NoClassDefFoundError e) {
                Complaints.say("the server stays off, this Java runtime has no module jdk.httpserver");
            } catch (RuntimeException | LinkageError e) {
                Complaints.say("the server stays off", e);
            }
        }
    }
}
