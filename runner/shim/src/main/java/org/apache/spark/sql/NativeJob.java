package org.apache.spark.sql;

import java.io.IOException;
import java.io.InputStream;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;

/** The native program: found, started with the same arguments, settings and environment, and waited for. */
final class NativeJob {
    private static final String NAME = "firesteel";
    private static final int NOT_FOUND = 2;

    private static Process started;

    private NativeJob() {}

    /** Runs it to its end; its exit code is this process's, and signals that this process gets are its, too. */
    static void run(String mainClass, String[] arguments) throws Exception {
        Path program = find();
        if (program == null) {
            System.err.println("firesteel: the program is neither beside the jar nor in it; set FIRESTEEL_BINARY to its path");
            System.exit(NOT_FOUND);
        }
        List<String> command = new ArrayList<>(List.of(program.toString(), "run", "--class", mainClass));
        // spark-submit hands its settings to the class as system properties.
        for (String key : System.getProperties().stringPropertyNames()) {
            if (key.startsWith("spark.") || key.startsWith("firesteel.")) {
                command.add("--conf");
                command.add(key + "=" + System.getProperty(key));
            }
        }
        command.addAll(List.of(arguments));
        // What ends this process by a signal ends the program by the same, and tells how it ended. Before the program is started: a signal may
        // come at once.
        Runtime.getRuntime().addShutdownHook(new Thread(NativeJob::stop));
        Process process = start(new ProcessBuilder(command).inheritIO());
        System.exit(await(process));
    }

    private static synchronized Process start(ProcessBuilder program) throws IOException {
        started = program.start();
        return started;
    }

    private static synchronized void stop() {
        if (started != null) {
            started.destroy();
            Runtime.getRuntime().halt(await(started));
        }
    }

    private static int await(Process process) {
        while (true) {
            try {
                return process.waitFor();
            } catch (InterruptedException e) {
                // Only its end counts.
            }
        }
    }

    private static Path find() throws IOException, URISyntaxException {
        String named = System.getenv("FIRESTEEL_BINARY");
        if (named != null && !named.isEmpty()) {
            return Files.isExecutable(Paths.get(named)) ? Paths.get(named) : null;
        }
        Path here = Paths.get(NativeJob.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        Path beside = (Files.isDirectory(here) ? here : here.getParent()).resolve(NAME);
        if (Files.isExecutable(beside)) {
            return beside;
        }
        try (InputStream packed = NativeJob.class.getResourceAsStream("/" + NAME)) {
            if (packed == null) {
                return null;
            }
            Path program = Files.createTempFile(
                NAME, "", PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
            program.toFile().deleteOnExit();
            Files.copy(packed, program, StandardCopyOption.REPLACE_EXISTING);
            Files.setPosixFilePermissions(program, PosixFilePermissions.fromString("rwx------"));
            return program;
        }
    }
}
