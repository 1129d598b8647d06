import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceInstanceBuilder;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.curator.x.discovery.ServiceType;
import org.apache.curator.x.discovery.UriSpec;
import org.apache.curator.x.discovery.details.JsonInstanceSerializer;
import org.apache.curator.x.discovery.details.ServiceCacheListener;
import org.apache.curator.x.discovery.strategies.RoundRobinStrategy;

/**
 * A Java service that uses Curator X Discovery as it is meant to be used, and takes its commands from a test.
 *
 * <p>Arguments: CONNECT BASE_PATH SESSION_TIMEOUT_MS PAYLOAD ENABLED_FIELD, the payload being any or map, the last saying whether the
 * field is written. On standard input a JSON object a line, {@code {"call": 1, "do": "names"}}; on standard output {@code {"call": 1, "result":
 * …}} or {@code {"call": 1, "error": "…"}}, and {@code {"event": "cache", …}} whenever a cache changes. Ends with its input.
 */
public class CuratorPeer {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

  private final JsonInstanceSerializer<Object> serializer;
  private final ServiceDiscovery<Object> discovery;
  private final Map<String, ServiceInstance<Object>> registered = new HashMap<>();
  private final Map<String, ServiceCache<Object>> caches = new HashMap<>();
  private final Map<String, ServiceProvider<Object>> providers = new HashMap<>();

  @SuppressWarnings("unchecked")
  private CuratorPeer(CuratorFramework client, String basePath, Class<?> payload, boolean enabledField) throws Exception {
    Class<Object> type = (Class<Object>) payload;
    serializer = new JsonInstanceSerializer<>(type, !enabledField);
    discovery =
        ServiceDiscoveryBuilder.builder(type).client(client).basePath(basePath).serializer(serializer).watchInstances(true).build();
    discovery.start();
  }

  public static void main(String[] arguments) throws Exception {
    int sessionTimeoutMs = Integer.parseInt(arguments[2]);
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(arguments[0], sessionTimeoutMs, 15_000, new RetryNTimes(50, 100));
    client.getConnectionStateListenable().addListener((ignored, state) -> reportState(state));
    client.start();
    client.blockUntilConnected();
    CuratorPeer peer = new CuratorPeer(client, arguments[1], payloadClass(arguments[3]), Boolean.parseBoolean(arguments[4]));
    write(Map.of("event", "ready"));
    peer.serve(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
    client.close();
    System.exit(0);
  }

  private static Class<?> payloadClass(String kind) {
    return switch (kind) {
      case "any" -> Object.class;
      case "map" -> Map.class;
      default -> throw new IllegalArgumentException(kind);
    };
  }

  private static void reportState(ConnectionState state) {
    write(Map.of("event", "state", "state", state.name()));
  }

  private static void write(Map<String, ?> line) {
    try {
      OUT.println(JSON.writeValueAsString(line));
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  @SuppressWarnings("unchecked")
  private void serve(BufferedReader input) throws Exception {
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      Map<String, Object> command = JSON.readValue(line, Map.class);
      Map<String, Object> answer = new LinkedHashMap<>();
      answer.put("call", command.get("call"));
      try {
        answer.put("result", carryOut((String) command.get("do"), command));
      } catch (Exception error) {
        answer.put("error", error.getClass().getName());
      }
      write(answer);
    }
  }

  private Object carryOut(String what, Map<String, Object> command) throws Exception {
    String name = (String) command.get("name");
    String id = (String) command.get("id");
    switch (what) {
      case "register":
        return keep(command, discovery::registerService);
      case "update":
        return keep(command, discovery::updateService);
      case "unregister":
        discovery.unregisterService(registered.remove(name + "/" + id));
        return null;
      case "names":
        return discovery.queryForNames();
      case "instances":
        return describe(discovery.queryForInstances(name));
      case "instance":
        return describe(discovery.queryForInstance(name, id));
      case "follow":
        follow(name);
        return null;
      case "cached":
        return describe(caches.get(name).getInstances());
      case "provide":
        providers.put(name, discovery.serviceProviderBuilder().serviceName(name).providerStrategy(new RoundRobinStrategy<>()).build());
        providers.get(name).start();
        return null;
      case "pick":
        return describe(providers.get(name).getInstance());
      case "decode":
        return describe(serializer.deserialize(((String) command.get("json")).getBytes(StandardCharsets.UTF_8)));
      default:
        throw new IllegalArgumentException(what);
    }
  }

  private interface Action {
    void on(ServiceInstance<Object> instance) throws Exception;
  }

  @SuppressWarnings("unchecked")
  private Object keep(Map<String, Object> command, Action action) throws Exception {
    Map<String, Object> given = (Map<String, Object>) command.get("instance");
    ServiceInstanceBuilder<Object> builder = ServiceInstance.builder();
    builder.name((String) given.get("name")).id((String) given.get("id")).address((String) given.get("address"));
    if (given.get("port") != null) builder.port((Integer) given.get("port"));
    if (given.get("sslPort") != null) builder.sslPort((Integer) given.get("sslPort"));
    if (given.get("serviceType") != null) builder.serviceType(ServiceType.valueOf((String) given.get("serviceType")));
    if (given.get("uriSpec") != null) builder.uriSpec(new UriSpec((String) given.get("uriSpec")));
    if (given.get("enabled") != null) builder.enabled((Boolean) given.get("enabled"));
    if (given.get("payload") instanceof Map<?, ?> map) builder.payload(new TreeMap<>(map));
    else builder.payload(given.get("payload"));
    ServiceInstance<Object> instance = builder.build();
    action.on(instance);
    registered.put(instance.getName() + "/" + instance.getId(), instance);
    return null;
  }

  private void follow(String name) throws Exception {
    ServiceCache<Object> cache = discovery.serviceCacheBuilder().name(name).build();
    caches.put(name, cache);
    cache.addListener(
        new ServiceCacheListener() {
          @Override
          public void cacheChanged() {
            write(Map.of("event", "cache", "name", name, "instances", describe(cache.getInstances())));
          }

          @Override
          public void stateChanged(CuratorFramework client, ConnectionState state) {}
        });
    cache.start();
  }

  private static List<Object> describe(Collection<ServiceInstance<Object>> instances) {
    List<Object> described = new ArrayList<>();
    for (ServiceInstance<Object> instance : instances) described.add(describe(instance));
    return described;
  }

  /** Every field as Java has it, the class of the payload, and the URL that comes of the uriSpec. */
  private static Map<String, Object> describe(ServiceInstance<Object> instance) {
    if (instance == null) return null;
    Object payload = instance.getPayload();
    Map<String, Object> described = new LinkedHashMap<>();
    described.put("name", instance.getName());
    described.put("id", instance.getId());
    described.put("address", instance.getAddress());
    described.put("port", instance.getPort());
    described.put("sslPort", instance.getSslPort());
    described.put("payload", payload);
    described.put("payloadClass", payload == null ? null : payload.getClass().getName());
    described.put("registrationTimeUTC", instance.getRegistrationTimeUTC());
    described.put("serviceType", instance.getServiceType());
    described.put("url", instance.getUriSpec() == null ? null : instance.buildUriSpec());
    described.put("enabled", instance.isEnabled());
    return described;
  }
}
