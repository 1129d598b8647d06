import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.cloud.client.ServiceInstance;
import org.springframework.cloud.client.loadbalancer.LoadBalancerClient;
import org.springframework.cloud.zookeeper.discovery.ZookeeperDiscoveryClient;
import org.springframework.cloud.zookeeper.discovery.ZookeeperInstance;
import org.springframework.cloud.zookeeper.serviceregistry.ServiceInstanceRegistration;
import org.springframework.cloud.zookeeper.serviceregistry.ZookeeperRegistration;
import org.springframework.cloud.zookeeper.serviceregistry.ZookeeperServiceRegistry;
import org.springframework.context.ConfigurableApplicationContext;

/**
 * A Spring Boot application that uses Spring Cloud Zookeeper as it is meant to be used, and takes its commands from a test, line by line as CuratorPeer.
 *
 * <p>Arguments: CONNECT ROOT.
 */
@EnableAutoConfiguration
public class SpringPeer {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static PrintStream out;

  public static void main(String[] arguments) throws Exception {
    out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    try (ConfigurableApplicationContext context =
        new SpringApplicationBuilder(SpringPeer.class)
            .web(WebApplicationType.NONE)
            .properties(
                "spring.application.name=peer",
                "spring.main.banner-mode=off",
                "logging.level.root=error",
                "spring.cloud.loadbalancer.cache.enabled=false",
                "spring.cloud.zookeeper.config.enabled=false",
                "spring.cloud.zookeeper.connect-string=" + arguments[0],
                "spring.cloud.zookeeper.discovery.root=" + arguments[1])
            .run()) {
      write(Map.of("event", "ready"));
      serve(context, new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
    }
  }

  private static void write(Map<String, ?> line) throws Exception {
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

  private static Object carryOut(ConfigurableApplicationContext context, String what, Map<String, Object> command) {
    String name = (String) command.get("name");
    switch (what) {
      case "register":
        context.getBean(ZookeeperServiceRegistry.class).register(registration(command));
        return null;
      case "instances":
        List<Object> instances = new ArrayList<>();
        for (ServiceInstance instance : context.getBean(ZookeeperDiscoveryClient.class).getInstances(name)) instances.add(describe(instance));
        return instances;
      case "choose":
        return describe(context.getBean(LoadBalancerClient.class).choose(name));
      default:
        throw new IllegalArgumentException(what);
    }
  }

  @SuppressWarnings("unchecked")
  private static ZookeeperRegistration registration(Map<String, Object> command) {
    Map<String, Object> given = (Map<String, Object>) command.get("instance");
    String name = (String) given.get("name");
    String id = (String) given.get("id");
    return ServiceInstanceRegistration.builder()
        .name(name)
        .id(id)
        .address((String) given.get("address"))
        .port((Integer) given.get("port"))
        .defaultUriSpec()
        .payload(new ZookeeperInstance(id, name, (Map<String, String>) given.get("metadata")))
        .build();
  }

  private static Map<String, Object> describe(ServiceInstance instance) {
    if (instance == null) return null;
    Map<String, Object> described = new LinkedHashMap<>();
    described.put("id", instance.getInstanceId());
    described.put("host", instance.getHost());
    described.put("port", instance.getPort());
    described.put("secure", instance.isSecure());
    described.put("uri", instance.getUri().toString());
    described.put("metadata", instance.getMetadata());
    return described;
  }
}
