import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** An HTTP service that is given a node id by {@code nodelease run}. The JDK is all it needs: {@code java Main.java}. */
public final class Main {
  private static final String NODE_ID = System.getenv("NODE_ID");
  private static final String VERSION = System.getenv("NODE_ID_VERSION");
  private static final URI LEASE = URI.create(System.getenv("NODELEASE_URL") + "/lease");
  private static final HttpClient CLIENT = HttpClient.newHttpClient();

  public static void main(String[] args) throws IOException {
    int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "0"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    server.createContext("/", Main::answer);
    server.start();
    // On SIGTERM: no new requests, up to five seconds for those under way, and then the end, upon which nodelease gives the node id back.
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      server.stop(5);
      System.out.println("ended");
    }));
    System.out.printf("node %s, version %s, listens on port %d%n", NODE_ID, VERSION, server.getAddress().getPort());
  }

  /** Whether the node id is still ours: 200 says so, anything else and no answer at all within a second do not. */
  private static boolean isValid() {
    HttpRequest question = HttpRequest.newBuilder(LEASE).timeout(Duration.ofSeconds(1)).build();
    try {
      return CLIENT.send(question, BodyHandlers.discarding()).statusCode() == 200;
    } catch (IOException noAnswer) {
      return false;
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private static void answer(HttpExchange exchange) throws IOException {
    boolean valid = isValid();
    String json = valid ? "{\"node\": %s, \"version\": %s}".formatted(NODE_ID, VERSION) : "{\"error\": \"this node has lost its id\"}";
    byte[] body = json.getBytes(StandardCharsets.UTF_8);
    exchange.getResponseHeaders().set("content-type", "application/json");
    exchange.sendResponseHeaders(valid ? 200 : 503, body.length);
    exchange.getResponseBody().write(body);
    exchange.close();
  }
}
