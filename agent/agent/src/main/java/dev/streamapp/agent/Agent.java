package dev.streamapp.agent;

import dev.streamapp.agent.announcement.AnnouncementState;
import dev.streamapp.agent.assignor.AssignorInstaller;
import dev.streamapp.agent.assignor.AssignorRounds;
import dev.streamapp.agent.config.Defaults;
import dev.streamapp.agent.heartbeat.HeartbeatCap;
import dev.streamapp.agent.instance.Instances;
import dev.streamapp.agent.instance.LeaveOnClose;
import dev.streamapp.agent.instance.PollWaits;
import dev.streamapp.agent.instance.TaskTimes;
import dev.streamapp.agent.instrument.Hook;
import dev.streamapp.agent.instrument.KafkaTransformer;
import dev.streamapp.agent.instrument.Registry;
import dev.streamapp.agent.report.Health;
import dev.streamapp.agent.report.Prober;
import dev.streamapp.agent.report.Report;
import dev.streamapp.agent.runtime.WarningLog;
import dev.streamapp.agent.server.ReportServer;
import dev.streamapp.agent.server.TokenAuth;
import dev.streamapp.agent.warmup.WarmUp;
import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Creates the parts of the agent and connects them. {@link dev.streamapp.agent.loader.AgentLoader} calls it by name, before the application's main.
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
        Instances instances = new Instances();
        TaskTimes taskTimes = new TaskTimes(System::nanoTime);
        HeartbeatCap heartbeatCap = new HeartbeatCap(settings.defaults().contains("heartbeat"), System::nanoTime);
        Prober prober = new Prober(instances::current);
        ServerStart server = new ServerStart(settings, prober, () -> new ReportServer.Parts(
                new TokenAuth(settings.tokenHashes()), prober, new Report(settings.podUid(), new Report.News(announcementState, rounds, taskTimes, heartbeatCap)), instances,
                new Health(instances::all, System::nanoTime), announcementState, heartbeatCap));
        Defaults defaults = new Defaults(settings.defaults(), assignor, server::whyOff);
        LeaveOnClose leaveOnClose = new LeaveOnClose(defaults, announcementState, instances);
        PollWaits pollWaits = new PollWaits(System::nanoTime);
        Hook hook = new Hook(new Hook.Parts(instances, defaults, leaveOnClose, assignor, taskTimes, pollWaits, heartbeatCap, new WarmUp(), server::begin));
        if (publish(Registry.open(instrumentation), announcementState, rounds, hook)) {
            instrumentation.addTransformer(new KafkaTransformer());
        } else {
            WarningLog.warn("another copy of the agent is at work in this JVM, this one stays off");
        }
    }

    /**
     * Publishes the agent's functions to the assignor and the advices. The values use types of the JDK only.
     *
     * @return false if another copy of the agent did so before
     */
    private static boolean publish(Map<String, Object> registry, AnnouncementState announcementState, AssignorRounds rounds, Hook hook) {
        Supplier<Map<String, Object>> announcement = () -> announcementState.now().asMap();
        Consumer<Map<String, Object>> round = result -> {
            try {
                rounds.record(result);
            } catch (RuntimeException e) {
                WarningLog.warn("the assignor's word about its round is not taken", e);
            }
        };
        if (registry.putIfAbsent(Hook.KEY, hook) != null) {
            return false;
        }
        registry.put(Registry.ANNOUNCEMENT, announcement);
        registry.put(Registry.ROUND, round);
        return true;
    }
}
