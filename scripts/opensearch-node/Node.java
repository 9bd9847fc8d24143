import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Map;
import org.opensearch.Version;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.plugins.PluginInfo;

/**
 * One OpenSearch node for tests, put together from the modules on the class path: {@code Node RUN_DIR}.
 *
 * <p>It listens on a free port of 127.0.0.1 and, once it is up, writes that port to {@code RUN_DIR/port}. Everything it
 * stores is below {@code RUN_DIR}. SIGTERM stops it cleanly.
 */
final class Node extends org.opensearch.node.Node {
    /** What the distribution has in its folder "modules", as far as a store of documents needs it. */
    private static final List<String> MODULES = List.of(
        "org.opensearch.transport.Netty4ModulePlugin",
        "org.opensearch.analysis.common.CommonAnalysisModulePlugin",
        "org.opensearch.painless.PainlessModulePlugin",
        "org.opensearch.index.reindex.ReindexModulePlugin",
        "org.opensearch.index.mapper.MapperExtrasModulePlugin");

    private Node(Environment environment) {
        super(environment, MODULES.stream().map(Node::module).toList(), false);
    }

    private static PluginInfo module(String name) {
        return new PluginInfo(name, "module", "", Version.CURRENT, "21", name, null, List.of(), false);
    }

    public static void main(String[] arguments) throws Exception {
        Path run = Path.of(arguments[0]).toAbsolutePath();
        for (String folder : List.of("config", "modules", "plugins", "data")) {
            Files.createDirectories(run.resolve(folder));
        }
        Settings settings = Settings.builder()
            .put("path.home", run.toString())
            .put("path.data", run.resolve("data").toString())
            .put("cluster.name", "firesteel-tests")
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.port", "0")
            .put("transport.port", "0")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        Node node = new Node(InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "tests"));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.close();
            } catch (Exception e) {
                e.printStackTrace();
            }
        }));
        node.start();
        int port = node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress().getPort();
        Path draft = Files.writeString(run.resolve("port.draft"), Integer.toString(port));
        Files.move(draft, run.resolve("port"), StandardCopyOption.ATOMIC_MOVE);
        Thread.currentThread().join();
    }
}
