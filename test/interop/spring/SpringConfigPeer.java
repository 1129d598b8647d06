import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.curator.framework.CuratorFramework;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.cloud.context.environment.EnvironmentChangeEvent;
import org.springframework.cloud.zookeeper.config.ZookeeperPropertySource;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.event.EventListener;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.PropertySource;

/**
 * A Spring Boot application with its configuration in ZooKeeper, by Spring Cloud Zookeeper's own loader and watcher. It takes its commands from
 * a test, line by line as CuratorPeer. It reports each change of which Spring has notified it, with the keys.
 *
 * <p>Arguments: CONNECT APP [PROFILE].
 */
@EnableAutoConfiguration
public class SpringConfigPeer {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static PrintStream out;

  public static void main(String[] arguments) throws Exception {
    out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    try (ConfigurableApplicationContext context =
        new SpringApplicationBuilder(SpringConfigPeer.class)
            .web(WebApplicationType.NONE)
            .properties(
                "spring.config.import=zookeeper:",
                "spring.application.name=" + arguments[1],
                "spring.profiles.active=" + (arguments.length > 2 ? arguments[2] : ""),
                "spring.main.banner-mode=off",
                "logging.level.root=error",
                "spring.cloud.discovery.enabled=false",
                "spring.cloud.service-registry.auto-registration.enabled=false",
                "spring.cloud.zookeeper.connect-string=" + arguments[0])
            .run()) {
      write(Map.of("event", "ready"));
      serve(context, new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
    }
  }

  /** Spring's environment has the new values by now. */
  @EventListener
  public void changed(EnvironmentChangeEvent event) throws Exception {
    if (!event.getKeys().isEmpty()) write(Map.of("event", "changed", "keys", new TreeSet<>(event.getKeys())));
  }

  private static synchronized void write(Map<String, ?> line) throws Exception {
    out.println(JSON.writeValueAsString(line));
  }

  @SuppressWarnings("unchecked")
  private static void serve(ConfigurableApplicationContext context, BufferedReader input) throws Exception {
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      Map<String, Object> command = JSON.readValue(line, Map.class);
      Map<String, Object> answer = new LinkedHashMap<>();
      answer.put("call", command.get("call"));
      try {
        answer.put("result", carryOut(context, (String) command.get("do"), command));
      } catch (Exception error) {
        answer.put("error", error.getClass().getName());
      }
      write(answer);
    }
  }

  private static Object carryOut(ConfigurableApplicationContext context, String what, Map<String, Object> command) throws Exception {
    CuratorFramework curator = context.getBean(CuratorFramework.class);
    String path = (String) command.get("path");
    switch (what) {
      case "properties":
        return properties(context.getEnvironment());
      case "contexts":
        List<String> contexts = new ArrayList<>();
        for (ZookeeperPropertySource source : sources(context.getEnvironment())) contexts.add(source.getContext());
        return contexts;
      case "write":
        byte[] data = ((String) command.get("value")).getBytes(StandardCharsets.UTF_8);
        curator.create().orSetData().creatingParentsIfNeeded().forPath(path, data);
        return null;
      case "remove":
        curator.delete().forPath(path);
        return null;
      default:
        throw new IllegalArgumentException(what);
    }
  }

  /** What the application gets by each key that stands in ZooKeeper. */
  private static Map<String, String> properties(ConfigurableEnvironment environment) {
    Map<String, String> found = new TreeMap<>();
    for (ZookeeperPropertySource source : sources(environment))
      for (String key : source.getPropertyNames()) found.put(key, environment.getProperty(key));
    return found;
  }

  /** The first one wins. */
  private static List<ZookeeperPropertySource> sources(ConfigurableEnvironment environment) {
    List<ZookeeperPropertySource> found = new ArrayList<>();
    for (PropertySource<?> source : environment.getPropertySources()) {
      if (source instanceof ZookeeperPropertySource) found.add((ZookeeperPropertySource) source);
    }
    return found;
  }
}
