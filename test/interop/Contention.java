import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.zookeeper.data.Stat;

/** Contenders for one lock, and what it costs them. */
final class Contention {
  private static final long STUCK_MS = 60_000;

  private Contention() {}

  /**
   * Contenders with a session each acquire and release for a time. Within each tenure the contender's witness is written twice: what
   * is answered shows the transactions between which the lock was held at the least.
   */
  static List<Map<String, Object>> contend(
      Callable<CuratorFramework> newClient, List<String> kinds, String path, String witness, int contenders, long forMs) throws Exception {
    List<CuratorFramework> clients = new ArrayList<>();
    for (int i = 0; i < contenders; i += 1) clients.add(newClient.call());
    ExecutorService threads = Executors.newFixedThreadPool(contenders);
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(forMs);
    List<Future<Map<String, Object>>> running = new ArrayList<>();
    for (int i = 0; i < contenders; i += 1) {
      CuratorFramework client = clients.get(i);
      String kind = kinds.get(i % kinds.size());
      String own = witness + "/java-" + i;
      running.add(threads.submit(() -> turns(client, kind, path, own, end)));
    }
    List<Map<String, Object>> results = new ArrayList<>();
    for (Future<Map<String, Object>> each : running) results.add(each.get());
    threads.shutdown();
    for (CuratorFramework client : clients) client.close();
    return results;
  }

  private static Map<String, Object> turns(CuratorFramework client, String kind, String path, String witness, long end) throws Exception {
    client.create().creatingParentsIfNeeded().forPath(witness);
    List<Map<String, Object>> tenures = new ArrayList<>();
    while (System.nanoTime() < end) {
      Recipes.Recipe recipe = Recipes.of(client, kind, path, 0, "");
      if (!recipe.acquire(STUCK_MS)) throw new IllegalStateException("stuck");
      Stat entered = client.setData().forPath(witness);
      Stat own = client.checkExists().forPath(recipe.path());
      Stat left = client.setData().forPath(witness);
      recipe.release();
      Map<String, Object> tenure = new LinkedHashMap<>();
      tenure.put("token", Long.toString(own.getCzxid()));
      tenure.put("from", Long.toString(entered.getMzxid()));
      tenure.put("to", Long.toString(left.getMzxid()));
      tenures.add(tenure);
    }
    return Map.of("contender", witness, "kind", kind, "tenures", tenures);
  }

  /** One after the other, without anybody else: nanoseconds each. */
  static List<Long> uncontended(CuratorFramework client, String path, int rounds) throws Exception {
    InterProcessMutex mutex = new InterProcessMutex(client, path);
    List<Long> nanos = new ArrayList<>();
    for (int round = 0; round < rounds; round += 1) {
      long begun = System.nanoTime();
      mutex.acquire();
      mutex.release();
      nanos.add(System.nanoTime() - begun);
    }
    return nanos;
  }

  /** A holder, and waiting tasks behind it, each of which gives the lock back as soon as it has it. */
  static final class HandOver {
    private final CountDownLatch begin = new CountDownLatch(1);
    private final List<Long> nanos = Collections.synchronizedList(new ArrayList<>());
    private final AtomicLong givenAt = new AtomicLong();
    private final ExecutorService threads;
    private final List<Future<?>> running = new ArrayList<>();

    /** All of them wait when this returns. */
    HandOver(CuratorFramework client, String path, int waiting) throws Exception {
      threads = Executors.newFixedThreadPool(waiting + 1);
      CountDownLatch held = new CountDownLatch(1);
      running.add(
          threads.submit(
              () -> {
                InterProcessMutex mutex = new InterProcessMutex(client, path);
                mutex.acquire();
                held.countDown();
                begin.await();
                givenAt.set(System.nanoTime());
                mutex.release();
                return null;
              }));
      held.await();
      for (int i = 0; i < waiting; i += 1) {
        running.add(
            threads.submit(
                () -> {
                  InterProcessMutex mutex = new InterProcessMutex(client, path);
                  mutex.acquire();
                  long now = System.nanoTime();
                  nanos.add(now - givenAt.get());
                  givenAt.set(System.nanoTime());
                  mutex.release();
                  return null;
                }));
      }
      while (client.getChildren().forPath(path).size() < waiting + 1) Thread.sleep(10);
      // The last one has its znode, and is about to watch its predecessor.
      Thread.sleep(100);
    }

    /** From the call that releases to the acquisition by the next one: nanoseconds each. */
    List<Long> run() throws Exception {
      begin.countDown();
      for (Future<?> each : running) each.get();
      threads.shutdown();
      return nanos;
    }
  }
}
