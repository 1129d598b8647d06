import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.ProtocolConfig;
import org.apache.dubbo.config.ReferenceConfig;
import org.apache.dubbo.config.RegistryConfig;
import org.apache.dubbo.config.ServiceConfig;
import org.apache.dubbo.config.bootstrap.DubboBootstrap;

/**
 * A Dubbo application as it is meant to be used: a provider of {@link Greeter} by two protocols, or its consumer. A test commands it line by
 * line, as CuratorPeer.
 *
 * <p>Arguments: SERVER ROOT ROLE APPLICATION, the servers without a chroot, which Dubbo does not have; all that is Dubbo's goes below ROOT.
 */
public class DubboPeer {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static PrintStream out;

  /** The interface that is offered. */
  public interface Greeter {
    String greet(String name);
  }

  public static void main(String[] arguments) throws Exception {
    out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    String provider = arguments[3];
    boolean provides = arguments[2].equals("provider");
    ApplicationConfig application = new ApplicationConfig(provides ? provider : "consumer-of-" + provider);
    application.setQosEnable(false);
    application.setRegisterMode("instance");
    // Otherwise it would write into the home folder.
    application.setEnableFileCache(false);
    RegistryConfig registry = new RegistryConfig("zookeeper://" + arguments[0]);
    registry.setGroup(arguments[1] + "/dubbo");
    registry.setParameters(Map.of("rootPath", arguments[1] + "/services"));
    registry.setUseAsConfigCenter(false);
    registry.setUseAsMetadataCenter(false);
    ReferenceConfig<Greeter> reference = new ReferenceConfig<>();
    DubboBootstrap bootstrap = DubboBootstrap.getInstance().application(application).registry(registry);
    if (provides) {
      ServiceConfig<Greeter> service = new ServiceConfig<>();
      service.setInterface(Greeter.class);
      service.setRef(name -> "hello " + name);
      bootstrap.protocol(new ProtocolConfig("dubbo", -1)).protocol(new ProtocolConfig("tri", -1)).service(service);
    } else {
      reference.setInterface(Greeter.class);
      reference.setProvidedBy(provider);
      reference.setCheck(false);
      // On a loaded machine the first call loads classes on both sides for longer than the default of a second.
      reference.setTimeout(30_000);
      bootstrap.reference(reference);
    }
    try {
      bootstrap.start();
    } catch (RuntimeException error) {
      for (Throwable each = error; each != null; each = each.getCause()) System.err.println(each);
      // Its threads would go on.
      System.exit(1);
    }
    out.println(JSON.writeValueAsString(Map.of("event", "ready")));
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      Map<?, ?> command = JSON.readValue(line, Map.class);
      Map<String, Object> answer = new LinkedHashMap<>();
      answer.put("call", command.get("call"));
      try {
        answer.put("result", reference.get().greet((String) command.get("name")));
      } catch (Exception error) {
        answer.put("error", error.getClass().getName());
      }
      out.println(JSON.writeValueAsString(answer));
    }
    bootstrap.stop();
    System.exit(0);
  }
}
