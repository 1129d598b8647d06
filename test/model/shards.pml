/*
 * The ownership of shards as a model for SPIN: the map, the leases of the nodes, and any number of writers of the map.
 * The rules are T1 to T8 of docs/design/shards.md. docs/design/model.md says how to run it and what it leaves out.
 * shards-model.ts is a copy, to which traces of the simulation are compared: a change has to be made in both.
 *
 * SPIN tries every order of the steps below, an atomic { } being one step. A pause, a slow process, a late reply: each
 * is an order in which others go first. A -D of one of the names at the planted bugs puts that mistake in.
 *
 * Given is what lease.pml shows: a tenure that a reader can prove over is over for good (T0), and its work has ended.
 * `next` is no part of safety: an owner may hand on to any node, at any time. So may a plan be as foolish as it likes.
 */

/* ---- Bounds ---- */

#ifndef NODES
#define NODES 2
#endif
/* Tenures of a node. With ANY_TENURES there is no limit: a tenure that is over is wiped. */
#ifdef ANY_TENURES
#define TENURES 1
#endif
#ifndef TENURES
#define TENURES 2
#endif
/* The first map is epoch 1. */
#ifndef EPOCHS
#define EPOCHS 4
#endif
#ifndef SHARDS
#define SHARDS 1
#endif
#ifdef CALM /* room for what the calm needs */
#define ALL_EPOCHS (EPOCHS + 2)
#else
#define ALL_EPOCHS EPOCHS
#endif

/* ---- What there is ---- */

#define NO_OWNER (NODES * TENURES)
#define VALID 0
#define EVICTED 1 /* A tombstone that its holder has not seen: it may trust its lease for a while (rule 9). */
#define OVER 2

byte epoch = 1;
byte owner[(ALL_EPOCHS + 1) * SHARDS];
byte token[(ALL_EPOCHS + 1) * SHARDS];
byte version[NODES];
byte lease[NODES];
byte followed[NODES];          /* The epoch that it follows, 0 none. */
byte works[NODES * SHARDS];    /* The token of what runs, 0 nothing. */
byte sent[NODES * SHARDS];     /* T5: the epoch under which it sent a hand-on that may yet be applied. */
byte given_up[NODES * SHARDS]; /* T5: the token that it has given up. */
byte last[SHARDS];             /* The last token that was ever started. */
bool calm;

#define OWNER(e, s) owner[(e) * SHARDS + (s)]
#define TOKEN(e, s) token[(e) * SHARDS + (s)]
#define AT(n, s) ((n) * SHARDS + (s))
#define TENURE(n) ((n) * TENURES + version[n])
#define NODE(t) ((t) / TENURES)
#define VERSION(t) ((t) % TENURES)
#define IS_OVER(t) (VERSION(t) < version[NODE(t)] || VERSION(t) == version[NODE(t)] && lease[NODE(t)] == OVER)
#ifdef FUTURE_OWNERS /* a planner may even name tenures that have not begun */
#define EXISTS(t) true
#else
#define EXISTS(t) (VERSION(t) <= version[NODE(t)])
#endif

/* ---- The planted bugs ---- */

#ifdef BLIND /* T1: a write without If-Match is made from an older map */
#define ANY_BASE true
#else
#define ANY_BASE false
#endif

#ifdef BACK /* T2: a tenure acts on a lower epoch than one that it has read */
#define GOES_BACK true
#else
#define GOES_BACK false
#endif

#ifdef TOKEN_KEPT /* T3: a shard keeps its token when it changes hands */
#define NEW_TOKEN(s) (TOKEN(epoch, s) > 0 -> TOKEN(epoch, s) : epoch + 1)
#else
#define NEW_TOKEN(s) (epoch + 1)
#endif

#ifdef ID_ONLY /* T4: the owner is compared by node id, without the version */
#define MINE(n, s) (followed[n] > 0 && OWNER(followed[n], s) != NO_OWNER && NODE(OWNER(followed[n], s)) == n)
#else
#define MINE(n, s) (followed[n] > 0 && OWNER(followed[n], s) == TENURE(n))
#endif

#ifdef NO_LEASE /* T4: a shard is started without a valid lease */
#define MAY_START(n) true
#else
#define MAY_START(n) (lease[n] != OVER)
#endif

#ifdef NO_BAR /* T5: what has been handed on, it seems in vain, is started again */
#define BARRED(n, s) false
#elif defined(BAR_EPOCH) /* T5: it is barred under that epoch only */
#define BARRED(n, s) (sent[AT(n, s)] == followed[n])
#else
#define BARRED(n, s) (given_up[AT(n, s)] == TOKEN(followed[n], s))
#endif

#ifdef NO_RESEND /* T5: a hand-on that was refused is not sent again; found in the calm */
#define RESENDS false
#else
#define RESENDS true
#endif

#ifdef HAND_ON_RUNNING /* T5: a shard is handed on before its work has ended */
#define STOP(n, s) skip
#else
#define STOP(n, s) works[AT(n, s)] = 0
#endif

#ifdef NO_PROOF /* T6: an owner is replaced without a proof */
#define PROVEN(t) true
#elif defined(SAME_VERSION) /* T6: a lease held with the same version proves that the tenure is over */
#define PROVEN(t) (VERSION(t) <= version[NODE(t)])
#elif defined(LOWER_VERSION) /* T6: so does a lower version, or an absent object */
#define PROVEN(t) (IS_OVER(t) || VERSION(t) > 0)
#elif defined(TOMBSTONE) /* T6: so does the tombstone of an eviction, whatever its age */
#define PROVEN(t) (IS_OVER(t) || VERSION(t) == version[NODE(t)] && lease[NODE(t)] == EVICTED)
#else
#define PROVEN(t) IS_OVER(t)
#endif

#ifdef WORK_CONTINUES /* T7: the work continues when the lease has ended */
#define END_WORK(n, s) skip
#else
#define END_WORK(n, s) works[AT(n, s)] = 0
#endif

/* ---- Writing the map ---- */

inline write(s, t) {
  OWNER(epoch + 1, s) = (t);
  TOKEN(epoch + 1, s) = ((t) == NO_OWNER -> 0 : NEW_TOKEN(s))
}
inline copy(base, s) {
  OWNER(epoch + 1, s) = OWNER(base, s);
  TOKEN(epoch + 1, s) = TOKEN(base, s)
}
/* Any tenure, whatever the plan; or none. */
inline choose() {
  t = 0;
  do :: t < NO_OWNER -> t++ :: break od;
  if
#ifdef ANY_TENURES
  :: t < NO_OWNER && lease[t] == OVER -> t = NO_OWNER
#else
  :: t < NO_OWNER && !EXISTS(t) -> t = NO_OWNER
#endif
  :: else -> skip
  fi
}
inline is_applied() {
  epoch++; n = 0;
#ifndef BAR_EPOCH
  do :: n < NODES * SHARDS -> sent[n] = 0; n++ :: n == NODES * SHARDS -> break od; /* Of an earlier epoch: refused. */
#endif
  n = 0; s = 0; t = 0; base = 0;
  printf("map: epoch %d, shard 0 has owner %d, token %d\n", epoch, OWNER(epoch, 0), TOKEN(epoch, 0))
}

/* ---- A node ---- */

/* What must never happen: two owners, and a token that was there before. */
inline start(s) {
  printf("node %d (tenure %d) starts shard %d with token %d, by epoch %d\n",
    me, TENURE(me), s, TOKEN(followed[me], s), followed[me]);
  n = 0;
  do :: n < NODES -> assert(n == me || works[AT(n, s)] == 0); n++ :: n == NODES -> break od;
  n = 0;
  assert(TOKEN(followed[me], s) > last[s]);
  last[s] = TOKEN(followed[me], s);
  works[AT(me, s)] = last[s]
}

/* T5: something that runs, or that was stopped or never started, and may not have been handed on yet. */
#define MAY_HAND_ON(n, s) (lease[n] != OVER && MINE(n, s) && \
  (given_up[AT(n, s)] != TOKEN(followed[n], s) && !calm || \
   RESENDS && given_up[AT(n, s)] == TOKEN(followed[n], s) && sent[AT(n, s)] < followed[n] && followed[n] == epoch))

inline hand_on(s) {
  printf("node %d sends a hand-on of shard %d, by epoch %d\n", me, s, followed[me]);
  STOP(me, s);
  given_up[AT(me, s)] = TOKEN(followed[me], s);
#ifdef BAR_EPOCH
  sent[AT(me, s)] = followed[me]
#else
  sent[AT(me, s)] = (followed[me] == epoch -> epoch : 0) /* By an earlier epoch it is refused. */
#endif
}

#ifdef ANY_TENURES
/* What names a tenure that is over is as good as no owner: no task starts by it, and any task can prove it over. */
inline wipe() {
  e = 1;
  do
  :: e <= epoch ->
     s = 0;
     do
     :: s < SHARDS -> if :: OWNER(e, s) == me -> OWNER(e, s) = NO_OWNER; TOKEN(e, s) = 0 :: else -> skip fi; s++
     :: s == SHARDS -> break
     od; e++
  :: e > epoch -> break
  od;
  e = 0; s = 0
}
#endif

proctype node(byte me) {
  byte e, s, n, t, base;
end:
  do
  /* T2: any state of the map that is later than the one that it follows; replies may be late. */
  :: atomic { lease[me] != OVER && followed[me] < epoch -> e = followed[me] + 1;
       do :: e < epoch -> e++ :: break od;
       printf("node %d reads epoch %d\n", me, e);
       followed[me] = e; e = 0 }
  :: atomic { GOES_BACK && lease[me] != OVER && followed[me] > 1 -> e = followed[me] - 1;
       do :: e > 1 -> e-- :: break od;
       printf("node %d reads epoch %d again\n", me, e);
       followed[me] = e; e = 0 }
  /* T4 */
  :: atomic { MAY_START(me) && MINE(me, 0) && works[AT(me, 0)] == 0 && !BARRED(me, 0) -> start(0) }
  /* T5: in the calm, only what has been stopped already. */
  :: atomic { MAY_HAND_ON(me, 0) -> hand_on(0) }
#if SHARDS == 2
  :: atomic { MAY_START(me) && MINE(me, 1) && works[AT(me, 1)] == 0 && !BARRED(me, 1) -> start(1) }
  :: atomic { MAY_HAND_ON(me, 1) -> hand_on(1) }
#endif
  /* T5: it is applied, perhaps late. It may carry all shards that the node has stopped. */
  :: atomic { (sent[AT(me, 0)] == epoch || sent[AT(me, SHARDS - 1)] == epoch) && epoch < (calm -> ALL_EPOCHS : EPOCHS) ->
       printf("map: the hand-on of node %d is applied\n", me);
       do
       :: s < SHARDS ->
          if
          :: sent[AT(me, s)] == epoch -> if :: choose() :: t = NO_OWNER fi; write(s, t)
          :: sent[AT(me, s)] != epoch || SHARDS > 1 && !calm -> copy(epoch, s)
          fi; s++
       :: s == SHARDS -> break
       od;
       is_applied() }
#ifdef CALM
  /* T6, T9: a node that follows the present map takes a shard that has no owner. */
  :: atomic { calm && epoch < ALL_EPOCHS && (OWNER(epoch, 0) == NO_OWNER || IS_OVER(OWNER(epoch, 0))) &&
       lease[me] == VALID && followed[me] == epoch -> write(0, TENURE(me)); is_applied() }
#endif
  /* T7: a crash, a lost lease, a release; an eviction that the holder has seen. */
  :: atomic { lease[me] != OVER && (!calm || lease[me] == EVICTED) ->
       printf("tenure %d is over\n", TENURE(me));
       do :: s < SHARDS -> END_WORK(me, s); sent[AT(me, s)] = 0; given_up[AT(me, s)] = 0; s++ :: s == SHARDS -> break od;
       s = 0;
       lease[me] = OVER;
#ifdef ANY_TENURES
       wipe();
#endif
#ifndef NO_LEASE
       followed[me] = 0
#endif
     }
#ifdef WORK_CONTINUES
  :: atomic { lease[me] == OVER && works[AT(me, 0)] > 0 -> works[AT(me, 0)] = 0; printf("node %d: the work has ended\n", me) }
#endif
  :: atomic { !calm && lease[me] == VALID -> lease[me] = EVICTED; printf("tenure %d is evicted\n", TENURE(me)) }
#ifdef ANY_TENURES
  :: atomic { !calm && lease[me] == OVER -> lease[me] = VALID; printf("node %d has a new tenure\n", me) }
#else
  :: atomic { !calm && lease[me] == OVER && version[me] < TENURES - 1 ->
       version[me]++; lease[me] = VALID; followed[me] = 0; printf("node %d has tenure %d\n", me, TENURE(me)) }
#endif
  od
}

/*
 * The content of a write is chosen when it is applied. That covers late writes and proofs that were read long before:
 * If-Match lets a write through only while the map is as it was read, and what is proven over stays over.
 */
proctype map() {
  byte s, t, base, n;
end:
  do
  /* T1, T3, T6: any writer gives shards without an owner, or whose owner is proven over, and copies the rest. */
  :: atomic { !calm && epoch < EPOCHS ->
       base = epoch;
       do :: ANY_BASE && base > 1 -> base-- :: break od;
       do
       :: s < SHARDS ->
          if
          :: OWNER(base, s) == NO_OWNER || PROVEN(OWNER(base, s)) -> choose(); write(s, t)
          :: copy(base, s)
          fi; s++
       :: s == SHARDS -> break
       od;
       is_applied() }
#ifdef CALM
  :: atomic { !calm -> calm = true; printf("from here on all is calm\n") }
#endif
  od
}

#ifdef CALM
/* From every state: once disturbances stop, the shard runs, or no node is there. */
proctype judge() {
  byte n;
  bool runs, some;
  timeout;
  atomic {
    do
    :: n < NODES ->
       runs = runs || lease[n] == VALID && works[AT(n, 0)] > 0; some = some || lease[n] != OVER; n++
    :: n == NODES -> break
    od;
    assert(!calm || runs || !some)
  }
}
#endif

init {
  atomic {
    byte i;
    do :: i < SHARDS -> OWNER(1, i) = NO_OWNER; i++ :: i == SHARDS -> break od;
    i = 0;
    do :: i < NODES -> run node(i); i++ :: i == NODES -> break od;
    run map()
#ifdef CALM
    ; run judge()
#endif
  }
}
