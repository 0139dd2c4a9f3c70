package dev.streamapp.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import dev.streamapp.agent.assignor.AssignorInstaller;
import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Kafka in a class loader that does not see the agent. The system's loader does not see it either. */
class ClassLoadersIT {

    @TempDir
    private Path folder;

    @ParameterizedTest
    @ValueSource(strings = {"nested", "stubborn", "contextless"})
    void theAssignorIsFoundInEveryLoader(String kind) throws IOException, InterruptedException {
        AppJvm.Plan plan = AppJvm.Plan.withoutBroker(folder).defaults("assignor,heartbeat");
        String all = plan.classPath;
        plan.classPath = Arrays.stream(all.split(File.pathSeparator)).filter(entry -> entry.endsWith("test-classes"))
                .collect(Collectors.joining(File.pathSeparator));
        plan.main = "dev.streamapp.agent.apps.NestedLauncher";
        plan.arguments.addAll(0, List.of(kind, all));
        try (AppJvm app = new AppJvm(plan)) {
            JsonObject instance = app.instance();
            assertTrue(instance.getAsJsonObject("assignor").get("isOurs").getAsBoolean(), instance.toString());
            assertEquals(500, instance.get("heartbeatMillis").getAsInt());
            assertTrue(instance.has("tasks"), instance.toString());
            assertEquals("", app.errors());
        }
    }

    @Test
    void noLoaderFindsTheAssignorInTheJarByName() throws IOException {
        try (JarFile jar = new JarFile(AppJvm.JAR.toFile())) {
            assertNull(jar.getEntry(AssignorInstaller.NAME.replace('.', '/') + ".class"));
            assertNotNull(jar.getEntry("assignor/" + AssignorInstaller.NAME.replace('.', '/') + ".classdata"));
            assertEquals(List.of(), jar.stream().map(entry -> entry.getName()).filter(name -> name.endsWith(".class"))
                    .filter(name -> !name.startsWith("dev/streamapp/agent/")).toList());
        }
    }
}
