import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

/** What of Curator's recipes can be had and given back, each by its own means. */
final class Recipes {
  private Recipes() {}

  /** One contender. All of its calls are made by one thread, which is what Curator's locks belong to. */
  interface Recipe {
    /** False when it was not acquired in time. */
    boolean acquire(long timeoutMs) throws Exception;

    void release() throws Exception;

    /** Its own znode, where Curator names it. */
    default String path() {
      return null;
    }

    /** From the write lock to the read lock. */
    default void downgrade() throws Exception {
      throw new UnsupportedOperationException();
    }

    /** Of an election: ids, and who leads. */
    default List<Map<String, Object>> participants() throws Exception {
      throw new UnsupportedOperationException();
    }
  }

  /** The count is that of a semaphore's leases or of a double barrier's members; the id that of an election's participant. */
  static Recipe of(CuratorFramework client, String kind, String path, int count, String id) {
    switch (kind) {
      case "lock":
        return new Mutex(client, path);
      case "read":
        return new ReadWrite(client, path, false);
      case "write":
        return new ReadWrite(client, path, true);
      case "semaphore":
        return new Semaphore(client, path, count);
      case "latch":
        return new Latch(client, path, id);
      case "selector":
        return new Selector(client, path, id);
      case "double-barrier":
        return new DoubleBarrier(client, path, count);
      default:
        throw new IllegalArgumentException(kind);
    }
  }

  private static final class Mutex implements Recipe {
    private static final class WithPath extends InterProcessMutex {
      WithPath(CuratorFramework client, String path) {
        super(client, path);
      }

      String path() {
        return getLockPath();
      }
    }

    private final WithPath mutex;

    Mutex(CuratorFramework client, String path) {
      mutex = new WithPath(client, path);
    }

    @Override
    public boolean acquire(long timeoutMs) throws Exception {
      return mutex.acquire(timeoutMs, TimeUnit.MILLISECONDS);
    }

    @Override
    public void release() throws Exception {
      mutex.release();
    }

    @Override
    public String path() {
      return mutex.path();
    }
  }

  private static final class ReadWrite implements Recipe {
    private final InterProcessReadWriteLock lock;
    private InterProcessMutex held;

    ReadWrite(CuratorFramework client, String path, boolean write) {
      lock = new InterProcessReadWriteLock(client, path);
      held = write ? lock.writeLock() : lock.readLock();
    }

    @Override
    public boolean acquire(long timeoutMs) throws Exception {
      return held.acquire(timeoutMs, TimeUnit.MILLISECONDS);
    }

    @Override
    public void release() throws Exception {
      held.release();
    }

    @Override
    public String path() {
      try {
        java.lang.reflect.Method method = InterProcessMutex.class.getDeclaredMethod("getLockPath");
        method.setAccessible(true);
        return (String) method.invoke(held);
      } catch (ReflectiveOperationException error) {
        throw new IllegalStateException(error);
      }
    }

    @Override
    public void downgrade() throws Exception {
      InterProcessMutex read = lock.readLock();
      read.acquire();
      held.release();
      held = read;
    }
  }

  private static final class Semaphore implements Recipe {
    private final InterProcessSemaphoreV2 semaphore;
    private final String leases;
    private Lease lease;

    Semaphore(CuratorFramework client, String path, int count) {
      semaphore = new InterProcessSemaphoreV2(client, path, count);
      leases = path + "/leases/";
    }

    @Override
    public boolean acquire(long timeoutMs) throws Exception {
      lease = semaphore.acquire(timeoutMs, TimeUnit.MILLISECONDS);
      return lease != null;
    }

    @Override
    public void release() {
      semaphore.returnLease(lease);
    }

    @Override
    public String path() {
      return leases + lease.getNodeName();
    }
  }

  private static final class Latch implements Recipe {
    private final LeaderLatch latch;

    Latch(CuratorFramework client, String path, String id) {
      latch = new LeaderLatch(client, path, id);
    }

    @Override
    public boolean acquire(long timeoutMs) throws Exception {
      latch.start();
      boolean leads = latch.await(timeoutMs, TimeUnit.MILLISECONDS);
      if (!leads) latch.close();
      return leads;
    }

    @Override
    public void release() throws Exception {
      latch.close();
    }

    @Override
    public String path() {
      return latch.getOurPath();
    }

    @Override
    public List<Map<String, Object>> participants() throws Exception {
      List<Map<String, Object>> participants = new ArrayList<>();
      for (Participant each : latch.getParticipants()) participants.add(Map.of("id", each.getId(), "leads", each.isLeader()));
      return participants;
    }
  }

  private static final class Selector implements Recipe {
    private final CountDownLatch leads = new CountDownLatch(1);
    private final CountDownLatch over = new CountDownLatch(1);
    private final CountDownLatch gone = new CountDownLatch(1);
    private final LeaderSelector selector;

    Selector(CuratorFramework client, String path, String id) {
      selector =
          new LeaderSelector(
              client,
              path,
              new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework ignored) throws Exception {
                  leads.countDown();
                  try {
                    over.await();
                  } finally {
                    gone.countDown();
                  }
                }
              });
      selector.setId(id);
    }

    @Override
    public boolean acquire(long timeoutMs) throws Exception {
      selector.start();
      boolean had = leads.await(timeoutMs, TimeUnit.MILLISECONDS);
      if (!had) selector.close();
      return had;
    }

    @Override
    public void release() throws Exception {
      over.countDown();
      gone.await();
      selector.close();
    }

    @Override
    public List<Map<String, Object>> participants() throws Exception {
      List<Map<String, Object>> participants = new ArrayList<>();
      for (Participant each : selector.getParticipants()) participants.add(Map.of("id", each.getId(), "leads", each.isLeader()));
      return participants;
    }
  }

  private static final class DoubleBarrier implements Recipe {
    private static final long LEAVES_WITHIN_MS = 30_000;
    private final DistributedDoubleBarrier barrier;

    DoubleBarrier(CuratorFramework client, String path, int count) {
      barrier = new DistributedDoubleBarrier(client, path, count);
    }

    @Override
    public boolean acquire(long timeoutMs) throws Exception {
      return barrier.enter(timeoutMs, TimeUnit.MILLISECONDS);
    }

    @Override
    public void release() throws Exception {
      if (!barrier.leave(LEAVES_WITHIN_MS, TimeUnit.MILLISECONDS)) throw new IllegalStateException("the others did not leave");
    }
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
