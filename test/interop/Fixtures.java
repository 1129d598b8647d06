import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceInstanceBuilder;
import org.apache.curator.x.discovery.ServiceType;
import org.apache.curator.x.discovery.UriSpec;
import org.apache.curator.x.discovery.details.JsonInstanceSerializer;

/** Writes the golden files of test/fixtures/curator, the very bytes of Curator's znodes, into the folder that it is given. */
public class Fixtures {
  private static Path folder;

  public static void main(String[] arguments) throws Exception {
    folder = Path.of(arguments[0]);
    write("bare", instance());
    write("ssl", instance().port(8080).sslPort(8443));
    write("static", instance().port(8080).serviceType(ServiceType.STATIC));
    write("permanent", instance().port(8080).serviceType(ServiceType.PERMANENT));
    write("sequential", instance().port(8080).serviceType(ServiceType.DYNAMIC_SEQUENTIAL));
    write("uri-spec", instance().port(8080).uriSpec(new UriSpec("{scheme}://{address}:{port}")));
    write("uri-spec-escapes", instance().uriSpec(new UriSpec("a{[}{ id }{]}{other}{}/{ssl-port}")));
    write("uri-spec-empty", instance().uriSpec(new UriSpec("")));
    write("payload-text", instance().payload("a text"));
    write("payload-empty-text", instance().payload(""));
    write("payload-number", instance().payload(7));
    write("payload-fraction", instance().payload(-0.25));
    write("payload-boolean", instance().payload(false));
    write("payload-long", instance().payload(9007199254740991L));
    write("payload-list", instance().payload(new ArrayList<>(List.of("a", 1))));
    write("payload-map", instance().payload(new TreeMap<>(Map.of("nodeId", "7", "version", 12, "zones", List.of("a", "b"), "on", true))));
    write("payload-empty-map", instance().payload(new TreeMap<>()));
    write("payload-nested", instance().payload(new TreeMap<>(Map.of("a", Map.of("b", Map.of("c", List.of(1, List.of())))))));
    write("payload-escapes", instance().payload("\u0000\u001f\u007f\u00e9\u2028\ud83d\ude00\ud800\"\\/<>\b\t\n\f\r"));
    // Since version 2.11 the field can be written; the default serializer still leaves it out, whatever it is.
    write("enabled", instance().port(8080), false);
    write("disabled", instance().port(8080).enabled(false), false);
    write("disabled-unsaid", instance().port(8080).enabled(false));
  }

  private static ServiceInstanceBuilder<Object> instance() throws Exception {
    return ServiceInstance.builder().name("orders").id("i-1").address("10.0.0.7").registrationTimeUTC(1795219197534L);
  }

  private static void write(String name, ServiceInstanceBuilder<Object> builder) throws Exception {
    write(name, builder, true);
  }

  private static void write(String name, ServiceInstanceBuilder<Object> builder, boolean compatible) throws Exception {
    byte[] json = new JsonInstanceSerializer<>(Object.class, compatible).serialize(builder.build());
    Files.write(folder.resolve(name + ".znode"), json);
  }
}
