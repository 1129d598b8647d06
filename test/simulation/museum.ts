/** A public bug of another project, as a planted bug. */
export interface Exhibit {
  readonly links: readonly string[];
  /** What happened there. */
  readonly there: string;
  /** The planted bug that is the same mistake: one of `MUSEUM_PLANTS` or `ALL_PLANTS`. */
  readonly plant: string;
  /** What happens here, in the first seed that finds it. */
  readonly here: string;
  /** The promise that is broken. */
  readonly foundBy: string;
  /** The first violating seed, from 0. */
  readonly seed: number;
}

const github = 'https://github.com';

/** In the order of docs/design/museum.md, which shows them. */
export const MUSEUM: readonly Exhibit[] = [
  // Clocks.
  {
    links: [`${github}/denoland/celld/issues/132`],
    there:
      "A deadline was written by one node's wall clock and read by another's. A node one second ahead takes a lease that its holder trusts for one second more: two owners of one cell.",
    plant: 'wall-clock-expiry',
    here: 'a task whose clock is ahead takes the id of a living task',
    foundBy: 'exclusion',
    seed: 0,
  },
  {
    links: [`${github}/johanhaleby/occurrent/issues/659`, `${github}/johanhaleby/occurrent/issues/662`],
    there:
      'The same, filed twice on one day. A holder has no deadline either: two nodes consume one subscription until a refresh is refused.',
    plant: 'ends-when-refused',
    here: 'the same, and the former holder does not stop either',
    foundBy: 'exclusion',
    seed: 0,
  },
  {
    links: [`${github}/borgbackup/borg/pull/10077`],
    there:
      'A client half an hour ahead removes the lock of a running backup. It may then delete chunks that the finished backup refers to.',
    plant: 'wall-clock-expiry',
    here: 'the same',
    foundBy: 'exclusion',
    seed: 0,
  },
  {
    links: [`${github}/lukas-krecan/ShedLock/issues/231`, `${github}/lukas-krecan/ShedLock/issues/639`],
    there: 'Two nodes whose clocks are three minutes apart get one lock. The assumption is NTP.',
    plant: 'wall-clock-expiry',
    here: 'the same',
    foundBy: 'exclusion',
    seed: 0,
  },
  {
    links: [`${github}/awslabs/amazon-dynamodb-lock-client/pull/88`],
    there:
      'Proposed, and open since 2023: wall clocks with an upper bound for their error, so that no task has to wait and watch.',
    plant: 'bounded-skew',
    here: 'a clock is off by more than a minute',
    foundBy: 'exclusion',
    seed: 0,
  },
  {
    links: [`${github}/borgbackup/borg/pull/9888`],
    there:
      'A laptop slept during a backup. Awake again, it found its own lock stale, deleted it, and failed: it held no lock.',
    plant: 'stale-to-itself',
    here: 'a clock is set forward, and a task gives up a lease that names it',
    foundBy: 'own-writes',
    seed: 51,
  },
  {
    links: [`${github}/microsoft/etcd3/issues/155`],
    there: 'The client reports a lease as lost after two TTLs without an answer. The server waits for one.',
    plant: 'twice-the-duration',
    here: 'a command runs on after its deadline',
    foundBy: 'deadline',
    seed: 4,
  },
  {
    links: [`${github}/kubernetes/kubernetes/issues/47671`],
    there:
      'A contender counts its own lease duration, not that of the leader: 10 seconds against 30 make two leaders.',
    plant: 'own-settings',
    here: 'a task with shorter settings takes an id too early',
    foundBy: 'exclusion',
    seed: 5,
  },
  {
    links: [`${github}/pathosDev/actor-ts/issues/937`],
    there:
      '`checkAlive()` answers from memory, and has no caller. After a stall, a node goes on downing the side that holds the lease.',
    plant: 'timer-validity',
    here: 'a task believes past its deadline, until a timer fires',
    foundBy: 'deadline',
    seed: 4,
  },
  // Answers.
  {
    links: [`${github}/akkadotnet/Akka.Management/issues/3402`],
    there:
      'A write meets a conflict, and the lease has no owner. The shard hears that it has the lease, and only then the second write loses: one shard on two nodes.',
    plant: 'granted-before-retry',
    here: 'two tasks hold one version',
    foundBy: 'fencing',
    seed: 9,
  },
  {
    links: [`${github}/akkadotnet/Akka.Management/pull/3418`],
    there:
      'A heartbeat is applied, and its answer times out. The second one conflicts with the first, and a healthy node gives up its lease.',
    plant: 'no-read-back',
    here: 'a task gives up a lease that names it',
    foundBy: 'own-writes',
    seed: 0,
  },
  {
    links: [`${github}/aws/aws-sdk-java-v2/issues/6580`],
    there:
      'The SDK repeats a conditional write whose answer was lost. The copy is refused, and the winner hears that it has lost. The issue was closed as stale.',
    plant: 'sdk-retry',
    here: 'the same',
    foundBy: 'own-writes',
    seed: 0,
  },
  {
    links: [`${github}/pathosDev/actor-ts/issues/142`],
    there:
      'An attempt to acquire times out and is given up. Its answer comes late, and counts: both halves of a cluster can win.',
    plant: 'late-grant',
    here: 'a task believes a second too long',
    foundBy: 'deadline',
    seed: 4,
  },
  {
    links: [`${github}/netlify/primitives/issues/741`],
    there: 'Any status but 412 is success, 503 as well: lost writes are reported as written.',
    plant: 'any-answer-renews',
    here: 'renewals that failed prolong the lease',
    foundBy: 'deadline',
    seed: 15,
  },
  {
    links: [`${github}/Azure/azure-sdk-for-go/issues/20717`],
    there: 'The first claim of a partition had no condition, and so could have several winners.',
    plant: 'first-claim-overwrites',
    here: 'a new id goes to two tasks',
    foundBy: 'fencing',
    seed: 3,
  },
  {
    links: [`${github}/ClickHouse/ClickHouse/issues/112587`],
    there:
      'An etag of time, inode and size can repeat. Two writers pass one condition, both hear of success, and one update is gone.',
    plant: 'repeating-etag',
    here: 'an object looks older than it is',
    foundBy: 'age',
    seed: 0,
  },
  // Names and numbers.
  {
    links: [`${github}/benbjohnson/litestream/pull/1073`],
    there:
      'A release deletes the lock, so the next generation is 1 again; expiry is by wall clock. No harm done: `replicate` does not use it yet.',
    plant: 'usual-protocol',
    here: 'the whole protocol, without one changed line',
    foundBy: 'exclusion',
    seed: 0,
  },
  {
    links: [`${github}/camunda/camunda/issues/47335`],
    there:
      'Scaling down deleted leases. After scaling up again the versions began at 0, and brokers refused to start next to their old data.',
    plant: 'delete-on-scale-down',
    here: 'a lease object is gone, and its version with it',
    foundBy: 'objects',
    seed: 0,
  },
  {
    links: [`${github}/camunda/camunda/issues/63347`],
    there:
      'A removed zone has no broker that could put its leases in order. When it was added again, no other broker did.',
    plant: 'never-revived',
    here: 'a task waits for ever next to a free id',
    foundBy: 'liveness',
    seed: 0,
  },
  {
    links: [`${github}/mlflow/mlflow/pull/25199`],
    there:
      'The proof of a lease is when it was acquired, and for how long. The review found that it is the same proof twice in one millisecond.',
    plant: 'time-is-proof',
    here: "a task takes another task's write of the same millisecond for its own",
    foundBy: 'fencing',
    seed: 245,
  },
  {
    links: [`${github}/metallb/metallb/pull/140`],
    there: 'All speakers had one name. Each read it in the lock, and all became the leader.',
    plant: 'key-is-a-right',
    here: 'a task takes an id from a task with the same sticky key',
    foundBy: 'exclusion',
    seed: 0,
  },
  {
    links: [`${github}/lukas-krecan/ShedLock/issues/74`],
    there:
      'A task outlasted its lock. At its end it unlocked, and the lock was that of another node by then.',
    plant: 'unlocks-in-any-case',
    here: 'a third task takes the id of the second',
    foundBy: 'exclusion',
    seed: 61,
  },
  // The undead.
  {
    links: [`${github}/hashicorp/consul/issues/9788`],
    there:
      'The lock was lost, and given to the second node. The program on the first got SIGTERM 90 seconds later: two active nodes.',
    plant: 'ninety-seconds',
    here: 'a command runs on next to the one of the next holder',
    foundBy: 'deadline',
    seed: 2,
  },
  {
    links: [`${github}/awslabs/amazon-kinesis-client/issues/265`],
    there:
      'Workers steal shards from living workers, for balance. The former owner does not know yet: records are handled twice.',
    plant: 'steals-shards',
    here: 'an owner finds its shard taken, and still runs it',
    foundBy: 'errors',
    seed: 5,
  },
  {
    links: [`${github}/apache/kafka/pull/13667`],
    there:
      'An instance that has fallen out of its group learns so when it commits. Until then it writes to the changelog of its successor.',
    plant: 'work-goes-on',
    here: 'work on a shard outlasts the lease',
    foundBy: 'shards',
    seed: 100,
  },
  {
    links: [`${github}/Ahoo-Wang/CosId/issues/342`],
    there:
      'A guard that checks from time to time found its machine number in the hands of another instance. Ids are made between two checks.',
    plant: 'ids-without-lease',
    here: 'a former holder makes ids with times of its successor',
    foundBy: 'ids',
    seed: 0,
  },
  {
    links: [`${github}/Meituan-Dianping/Leaf/issues/216`],
    there:
      'Each node reports its time every three seconds. After a restart with a clock set back by one second, ids of the time since the report repeat, a reader calculated.',
    plant: 'stamps-past-timestamp',
    here: 'ids pass what the lease says, where those of the next tenure begin',
    foundBy: 'ids',
    seed: 733,
  },
  // On ZooKeeper.
  {
    links: [`${github}/apache/curator/issues/1138`],
    there: 'A writer became a reader, with a number behind a waiting writer. Then both had the lock.',
    plant: 'downgrade-behind-writers',
    here: 'the same',
    foundBy: 'exclusion',
    seed: 12,
  },
  {
    links: [`${github}/apache/curator/issues/980`],
    there:
      'A session time-out was counted from the broken connection, not from the last heartbeat: two leaders.',
    plant: 'validity-from-reply',
    here: 'a lock is valid after its session',
    foundBy: 'deadline',
    seed: 17,
  },
  {
    links: [`${github}/apache/curator/issues/600`],
    there:
      'A thread was interrupted while its znode was created. The znode stayed, had its turn, and kept it.',
    plant: 'not-discarded',
    here: 'all others wait for ever',
    foundBy: 'liveness',
    seed: 1,
  },
];
