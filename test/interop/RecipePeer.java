import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.ErrorMode;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;

/**
 * A Java service that uses Curator's recipes as they are meant to be used, and takes its commands from a test.
 *
 * <p>Arguments: CONNECT SESSION_TIMEOUT_MS. On standard input a JSON object a line, {@code {"call": 1, "do": "acquire", "id": "a", "kind":
 * "lock", "path": "/l", "timeoutMs": 1000}}; on standard output {@code {"call": 1, "result": …}} or {@code {"call": 1, "error": "…"}}, and
 * {@code {"event": "state", …}} for its connection. What has the same id is done in order by one thread, the rest at once. Ends with its input.
 */
public class RecipePeer {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

  private final String connect;
  private final int sessionTimeoutMs;
  private final CuratorFramework client;
  private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
  private final Map<String, Recipes.Recipe> recipes = new ConcurrentHashMap<>();
  private final Map<String, DistributedQueue<String>> queues = new ConcurrentHashMap<>();
  private final Map<String, CountDownLatch> holds = new ConcurrentHashMap<>();
  private final Map<String, Contention.HandOver> handOvers = new ConcurrentHashMap<>();

  private RecipePeer(String connect, int sessionTimeoutMs) throws Exception {
    this.connect = connect;
    this.sessionTimeoutMs = sessionTimeoutMs;
    client = newClient();
    client.getConnectionStateListenable().addListener((ignored, state) -> reportState(state));
  }

  public static void main(String[] arguments) throws Exception {
    RecipePeer peer = new RecipePeer(arguments[0], Integer.parseInt(arguments[1]));
    write(Map.of("event", "ready"));
    peer.serve(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
    peer.client.close();
    System.exit(0);
  }

  private CuratorFramework newClient() throws Exception {
    CuratorFramework made =
        CuratorFrameworkFactory.builder()
            .connectString(connect)
            .sessionTimeoutMs(sessionTimeoutMs)
            .connectionTimeoutMs(15_000)
            .retryPolicy(new RetryNTimes(50, 100))
            // Without it the machine's address, which differs from machine to machine.
            .defaultData(Recipes.bytes("127.0.0.1"))
            .build();
    made.start();
    made.blockUntilConnected();
    return made;
  }

  private static void reportState(ConnectionState state) {
    write(Map.of("event", "state", "state", state.name()));
  }

  private static synchronized void write(Map<String, ?> line) {
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
      String id = (String) command.getOrDefault("id", "call " + command.get("call"));
      threads.computeIfAbsent(id, ignored -> Executors.newSingleThreadExecutor()).execute(() -> answer(command));
    }
  }

  private void answer(Map<String, Object> command) {
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("call", command.get("call"));
    try {
      answer.put("result", carryOut(command));
    } catch (Exception error) {
      answer.put("error", error.getClass().getName());
    }
    write(answer);
  }

  @SuppressWarnings("unchecked")
  private Object carryOut(Map<String, Object> command) throws Exception {
    String id = (String) command.get("id");
    String path = (String) command.get("path");
    int count = (Integer) command.getOrDefault("count", 0);
    long timeoutMs = ((Number) command.getOrDefault("timeoutMs", 0)).longValue();
    String data = (String) command.get("data");
    switch ((String) command.get("do")) {
      case "session":
        return String.format("%016x", client.getZookeeperClient().getZooKeeper().getSessionId());
      case "acquire":
        return acquire(id, Recipes.of(client, (String) command.get("kind"), path, count, id), timeoutMs);
      case "release":
        recipes.remove(id).release();
        return null;
      case "downgrade":
        recipes.get(id).downgrade();
        return null;
      case "participants":
        return recipes.get(id).participants();
      case "barrier-set":
        new DistributedBarrier(client, path).setBarrier();
        return null;
      case "barrier-remove":
        new DistributedBarrier(client, path).removeBarrier();
        return null;
      case "barrier-wait":
        return new DistributedBarrier(client, path).waitOnBarrier(timeoutMs, TimeUnit.MILLISECONDS);
      case "counter":
        return count(counter(path, (Boolean) command.getOrDefault("promoted", false)), (String) command.get("act"), command);
      case "offer":
        return new SimpleDistributedQueue(client, path).offer(HexFormat.of().parseHex(data));
      case "poll":
        byte[] item = new SimpleDistributedQueue(client, path).poll(timeoutMs, TimeUnit.MILLISECONDS);
        return item == null ? null : HexFormat.of().formatHex(item);
      case "put":
        put(path, data);
        return null;
      case "consume":
        consume(id, path, command);
        return null;
      case "end-hold":
        holds.get(id).countDown();
        return null;
      case "stop-consuming":
        queues.remove(id).close();
        return null;
      case "contend":
        List<String> kinds = (List<String>) command.get("kinds");
        return Contention.contend(this::newClient, kinds, path, (String) command.get("witness"), count, timeoutMs);
      case "uncontended":
        return Contention.uncontended(client, path, count);
      case "hand-over-prepare":
        handOvers.put(id, new Contention.HandOver(client, path, count));
        return null;
      case "hand-over":
        return handOvers.remove(id).run();
      default:
        throw new IllegalArgumentException((String) command.get("do"));
    }
  }

  /** What was had, null when it was not in time. */
  private Object acquire(String id, Recipes.Recipe recipe, long timeoutMs) throws Exception {
    // A waiting recipe may be asked for the participants: a latch takes part from its start on.
    recipes.put(id, recipe);
    boolean had = recipe.acquire(timeoutMs);
    if (!had) recipes.remove(id);
    if (!had) return null;
    Map<String, Object> acquired = new LinkedHashMap<>();
    acquired.put("path", recipe.path());
    acquired.put("token", recipe.path() == null ? null : Long.toString(client.checkExists().forPath(recipe.path()).getCzxid()));
    return acquired;
  }

  /** Promoted, it takes its lock as soon as another one was faster. */
  private DistributedAtomicLong counter(String path, boolean promoted) {
    if (!promoted) return new DistributedAtomicLong(client, path, new RetryNTimes(1_000, 1));
    PromotedToLock lock = PromotedToLock.builder().lockPath(path).timeout(30, TimeUnit.SECONDS).retryPolicy(new RetryNTimes(1_000, 1)).build();
    return new DistributedAtomicLong(client, path, new RetryNTimes(0, 1), lock);
  }

  private static Object count(DistributedAtomicLong counter, String act, Map<String, Object> command) throws Exception {
    long value = ((Number) command.getOrDefault("value", 0)).longValue();
    switch (act) {
      case "get":
        return outcomeOf(counter.get());
      case "add":
        return outcomeOf(counter.add(value));
      case "set":
        return outcomeOf(counter.trySet(value));
      case "compare-and-set":
        return outcomeOf(counter.compareAndSet(((Number) command.get("expected")).longValue(), value));
      default:
        throw new IllegalArgumentException(act);
    }
  }

  private static Object outcomeOf(AtomicValue<Long> value) throws Exception {
    return Map.of("succeeded", value.succeeded(), "value", value.succeeded() ? value.postValue() : value.preValue());
  }

  private void put(String path, String item) throws Exception {
    DistributedQueue<String> queue = builder(null, path).buildQueue();
    queue.start();
    queue.put(item);
    queue.flushPuts(10, TimeUnit.SECONDS);
    queue.close();
  }

  private void consume(String id, String path, Map<String, Object> command) throws Exception {
    String lockPath = (String) command.get("lockPath");
    boolean fails = (Boolean) command.getOrDefault("fails", false);
    int holdMs = (Integer) command.getOrDefault("holdMs", 0);
    CountDownLatch hold = new CountDownLatch(1);
    holds.put(id, hold);
    QueueConsumer<String> consumer =
        new QueueConsumer<>() {
          @Override
          public void consumeMessage(String item) throws Exception {
            write(Map.of("event", "item", "id", id, "item", item));
            hold.await(holdMs, TimeUnit.MILLISECONDS);
            if (fails) throw new IllegalStateException("as the test wants");
          }

          @Override
          public void stateChanged(CuratorFramework ignored, ConnectionState state) {}
        };
    QueueBuilder<String> builder = builder(consumer, path);
    if (lockPath != null) builder.lockPath(lockPath);
    DistributedQueue<String> queue = builder.buildQueue();
    if (lockPath != null) queue.setErrorMode(ErrorMode.REQUEUE);
    queues.put(id, queue);
    queue.start();
  }

  private QueueBuilder<String> builder(QueueConsumer<String> consumer, String path) {
    QueueSerializer<String> text =
        new QueueSerializer<>() {
          @Override
          public byte[] serialize(String item) {
            return Recipes.bytes(item);
          }

          @Override
          public String deserialize(byte[] bytes) {
            return new String(bytes, StandardCharsets.UTF_8);
          }
        };
    return QueueBuilder.builder(client, consumer, text, path);
  }
}
