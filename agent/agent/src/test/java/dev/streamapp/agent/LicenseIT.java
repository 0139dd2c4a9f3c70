package dev.streamapp.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Both jars carry the license and the notices of everything in them. */
class LicenseIT {

    private static final Path REPOSITORY = Path.of(System.getProperty("repository"));
    private static final String SHADED = "dev/streamapp/agent/shaded/";
    /** The shaded libraries, by package, and their names in the notice. */
    private static final Map<String, String> LIBRARIES = Map.of("bytebuddy", "Byte Buddy, Apache License", "gson", "Gson, Apache License");

    private static String text(JarFile jar, String name) throws IOException {
        JarEntry entry = jar.getJarEntry(name);
        assertNotNull(entry, jar.getName() + " has no " + name);
        return new String(jar.getInputStream(entry).readAllBytes(), StandardCharsets.UTF_8);
    }

    @ParameterizedTest
    @ValueSource(strings = {"agent.jar", "assignor.jar"})
    void theJarCarriesTheLicenseAndTheNoticeOfTheRepository(String property) throws IOException {
        try (JarFile jar = new JarFile(System.getProperty(property))) {
            assertEquals(Files.readString(REPOSITORY.resolve("LICENSE")), text(jar, "META-INF/LICENSE"));
            assertTrue(text(jar, "META-INF/NOTICE").startsWith(Files.readString(REPOSITORY.resolve("NOTICE"))), text(jar, "META-INF/NOTICE"));
        }
    }

    @Test
    void theNoticeNamesEveryShadedLibraryAndHoldsItsOwnNotice() throws IOException {
        try (JarFile jar = new JarFile(System.getProperty("agent.jar"))) {
            assertEquals(LIBRARIES.keySet(), jar.stream().map(JarEntry::getName).filter(name -> name.startsWith(SHADED) && name.endsWith(".class"))
                    .map(name -> name.substring(SHADED.length()).split("/")[0]).collect(Collectors.toSet()));
            String notice = text(jar, "META-INF/NOTICE");
            LIBRARIES.values().forEach(name -> assertTrue(notice.contains(name), name));
            assertTrue(notice.contains("Copyright 2014 - Present Rafael Winterhalter"), "the notice of Byte Buddy: " + notice);
        }
    }

    @Test
    void theLicenseOfAsmIsInTheJar() throws IOException {
        try (JarFile jar = new JarFile(System.getProperty("agent.jar"))) {
            assertNotNull(jar.getEntry(SHADED + "bytebuddy/jar/asm/ClassReader.class"));
            assertTrue(text(jar, "META-INF/licenses/ASM").startsWith("ASM: a very small and fast Java bytecode manipulation framework"));
        }
    }

    @Test
    void theAssignorHoldsNoForeignClass() throws IOException {
        try (JarFile jar = new JarFile(System.getProperty("assignor.jar"))) {
            assertTrue(jar.stream().map(JarEntry::getName).filter(name -> name.endsWith(".class"))
                    .allMatch(name -> name.startsWith("dev/streamapp/assignor/")));
        }
    }
}
