/*
 * The beginning, damage and repair of the map of shards as a model for SPIN: rule T10 of docs/design/shards.md, with
 * what it needs of T1 to T8, for one shard. shards.pml has those rules in full.
 *
 * There are nodes with any number of tenures, two founders (tasks that begin the map, operators that repair it), the
 * map, cluster.json, and damage: the map is lost, or a copy of an earlier state is put back. A task that sleeps, a late
 * write and a founder that ends in the middle need no line each: any step may wait for any time, and for ever.
 */

/* ---- Bounds ---- */

#ifndef NODES
#define NODES 2
#endif
/* Of a series. */
#ifndef EPOCHS
#define EPOCHS 3
#endif
/* What is drawn: beginnings and repairs. */
#ifndef SERIES
#define SERIES 2
#endif
#ifndef DAMAGES
#define DAMAGES 1
#endif
#ifdef CALM /* room for what the calm needs */
#define ALL_EPOCHS (EPOCHS + 2)
#define ALL_SERIES (SERIES + 1)
#else
#define ALL_EPOCHS EPOCHS
#define ALL_SERIES SERIES
#endif

/* ---- What there is ---- */

/*
 * A state of the map is one number: epoch, owner, the owner's token, whether it is frozen. An etag is a hash of it, so
 * two states have the same etag if their numbers are equal. A tenure that is over can be proven over by any task, and
 * is kept as no owner.
 */
#define ABSENT 0
#define NO_OWNER 3
#define MAP(epoch, owner, token, frozen) ((((epoch) * 4 + (owner)) * 32 + (token)) * 2 + (frozen))
#define EPOCH(map) ((map) / 256)
#define OWNER(map) ((map) / 64 % 4)
#define TOKEN(map) ((map) / 2 % 32)
#define FROZEN(map) ((map) % 2)

/* The first epoch of a series, and the series of a map. */
#define FIRST(number) (((number) - 1) * ALL_EPOCHS + 1)
#define SERIES_OF(map) ((EPOCH(map) - 1) / ALL_EPOCHS + 1)
#define IS_FULL(map) ((EPOCH(map) - 1) % ALL_EPOCHS >= (calm -> ALL_EPOCHS : EPOCHS) - 1)

short map;
byte series;   /* cluster.json: the last series that was drawn, 0 none; */
bool created;  /* whether the first map has been seen. */
short copy;    /* A copy of the map that somebody keeps. */
bool put_back; /* The map is that copy, or was made from it. */
byte damages;
byte last;     /* The last token that was ever started. */
bool calm;

typedef Node {
  bool lives;    /* It has a tenure that is not over. */
  bool part;     /* Its lease shows that it takes part. */
  bool left;     /* It did, and starts nothing any more. */
  byte shows;    /* The epoch of a frozen map that its lease shows, 0 none. */
  byte series;   /* Of cluster.json, as it was last read. */
  bool created;
  short followed;
  byte works;    /* The token of what runs, 0 nothing. */
  bool given_up; /* T5: what it owns by the map that it follows. */
  short base     /* Its write under way, perhaps late: the map that is replaced, ABSENT if there is no write. */
};
Node node[NODES];

#define IDLE 0
#define WRITING 1 /* the first map of its series */
#define WAITING 2 /* for the leases */
#define OPENING 3 /* the map: it is no longer frozen */
typedef Founder {
  byte does;
  bool repairs;
  byte first;    /* The epoch of its first map. */
  byte done;     /* The leases, as bits, that it does not wait for any more. */
  short base;    /* Its write under way, perhaps late: the map that is replaced, */
  short next     /* and the new one, ABSENT if there is no write. */
};
Founder founder[2];

#define MAY_RUN(n) (node[n].lives && !node[n].left)
#define HAS_MARKED(n) (node[n].part || node[n].left)
#define OWNS(n) (node[n].followed != ABSENT && OWNER(node[n].followed) == n)

/* ---- The planted bugs ---- */

#ifdef GIVE_EARLY /* owners are given before cluster.json says that the map is created */
#define KNOWS_CREATED(n) true
#else
#define KNOWS_CREATED(n) node[n].created
#endif

#ifdef ABSENT_BEGINS /* an absent map is taken for a beginning, although it was created */
#define REPAIRS (created && map != ABSENT)
#else
#define REPAIRS created
#endif

#ifdef NO_FLOOR /* a map of an earlier series than that of cluster.json is followed */
#define IS_OLD(n) false
#else
#define IS_OLD(n) (SERIES_OF(map) < node[n].series)
#endif

#ifdef BACK /* T2: a tenure follows a lower epoch than one that it has read */
#define IS_LATER(n) (EPOCH(map) != EPOCH(node[n].followed))
#else
#define IS_LATER(n) (EPOCH(map) > EPOCH(node[n].followed))
#endif

#ifdef PUBLISHED /* no series: a repair writes an epoch above all that the leases show */
#define FIRST_OF_REPAIR (node[0].shows > node[1].shows -> node[0].shows + 1 : node[1].shows + 1)
#undef IS_OLD
#define IS_OLD(n) false
#define SHOWS_ALL true
#else
#define FIRST_OF_REPAIR FIRST(series)
#define SHOWS_ALL false
#endif

#ifdef NO_FREEZE /* the first map of a repair is not frozen */
#define FREEZES false
#else
#define FREEZES founder[f].repairs
#endif

#ifdef NO_WAIT /* a repair does not wait for the leases */
#define IS_DONE(n, first) true
#else
#define IS_DONE(n, first) (!node[n].lives || !node[n].part || node[n].shows == (first))
#endif

#ifdef MARK_LATE /* a tenure reads the map before its lease shows that it takes part */
#define MAY_READ(n) true
#else
#define MAY_READ(n) node[n].part
#endif

#ifdef SHOW_EARLY /* a lease shows the epoch of a frozen map while work is still ending */
#define HAS_STOPPED(n) true
#else
#define HAS_STOPPED(n) (node[n].works == 0)
#endif

#ifdef LEAVE_EARLY /* a tenure that leaves removes its mark while work is still ending */
#define HAS_ENDED(n) true
#else
#define HAS_ENDED(n) (node[n].works == 0)
#endif

#ifdef KEEP_RUNNING /* T8: what the map that is followed does not have continues; found in the calm */
#define STOPS false
#else
#define STOPS true
#endif

#ifdef SENT_TWICE /* the first map of a series is sent again when its outcome is unknown */
#define SENT_ONCE false
#else
#define SENT_ONCE true
#endif

#ifdef RESUME /* a repair continues from a frozen map that it finds */
#define RESUMES true
#else
#define RESUMES false
#endif

/*
 * What is not promised: a tenure that has read no later epoch, and knows no later series, takes a copy that was put back
 * for the present map. So no such tenure reads it here, but in the last of the planted bugs.
 */
#define KNOWS_BETTER(n) (EPOCH(map) <= EPOCH(node[n].followed) || SERIES_OF(map) < node[n].series)
#ifdef OLD_CONTENT /* not promised: it does */
#define IS_MISLED(n) false
#else
#define IS_MISLED(n) (put_back && !KNOWS_BETTER(n))
#endif

/* ---- The store ---- */

/* It can never be the map again, so a write that replaces it is refused. */
#define NEVER_AGAIN(state) ((state) != map && ((state) == ABSENT && damages == DAMAGES || (state) != ABSENT && (state) != copy))

inline forget(f) {
  founder[f].does = IDLE; founder[f].first = 0; founder[f].repairs = false; founder[f].done = 0
}
inline refuse(f) {
  founder[f].next = ABSENT; founder[f].base = ABSENT;
  if :: founder[f].does == OPENING -> forget(f) :: else -> skip fi
}
inline refuse_outdated(f) {
  if :: founder[f].next != ABSENT && NEVER_AGAIN(founder[f].base) -> refuse(f) :: else -> skip fi
}
inline map_changes() {
  i = 0;
  do
  :: i < NODES ->
     if :: node[i].base != ABSENT && NEVER_AGAIN(node[i].base) -> node[i].base = ABSENT :: else -> skip fi; i++
  :: i == NODES -> break
  od;
  i = 0;
  refuse_outdated(0); refuse_outdated(1);
  if
  :: map == ABSENT -> printf("the map is absent\n")
  :: map != ABSENT -> printf("map: epoch %d, owner %d, token %d, frozen %d\n", EPOCH(map), OWNER(map), TOKEN(map), FROZEN(map))
  fi
}

proctype damage() {
  byte i;
end:
  do
  :: atomic { !calm && damages < DAMAGES && map != ABSENT -> map = ABSENT; put_back = false; damages++; map_changes() }
#ifdef COPIES
  :: atomic { !calm && damages < DAMAGES && copy == ABSENT && map != ABSENT -> copy = map; printf("the map is copied\n") }
  :: atomic { !calm && damages < DAMAGES && copy != ABSENT && map != copy ->
       printf("the copy is put back\n");
       map = copy; copy = ABSENT; put_back = true; damages++; map_changes() }
#endif
#ifdef CALM
  :: atomic { !calm -> calm = true; printf("from here on all is calm\n") }
#endif
  od
}

/* ---- A node ---- */

inline wipe(state) {
  if
  :: state != ABSENT && OWNER(state) == me -> state = MAP(EPOCH(state), NO_OWNER, 0, FROZEN(state))
  :: else -> skip
  fi
}
inline read_settings() {
  node[me].series = series; node[me].created = created;
  printf("node %d reads in cluster.json: series %d, created %d\n", me, series, created)
}

#define WAITS_FOR(f, n) (founder[f].does == WAITING && founder[f].repairs && !(founder[f].done & (1 << n)) && \
  IS_DONE(n, founder[f].first))

proctype task(byte me) {
  byte i;
end:
  do
  :: atomic { !calm && !node[me].lives -> node[me].lives = true; printf("node %d has a new tenure\n", me) }
  /* First the mark in the lease, then cluster.json, then the map. */
  :: atomic { node[me].lives && !HAS_MARKED(me) ->
       node[me].part = true; printf("the lease of node %d shows that it takes part\n", me);
#ifndef MARK_LATE
       read_settings()
#endif
     }
  :: atomic { node[me].lives && MAY_READ(me) && (node[me].series != series || node[me].created != created) -> read_settings() }
  :: atomic { node[me].lives && (MAY_READ(me) || node[me].left) && map != ABSENT && IS_LATER(me) && !IS_OLD(me) &&
       !IS_MISLED(me) ->
       if :: OWNER(map) != me || TOKEN(map) != TOKEN(node[me].followed) -> node[me].given_up = false :: else -> skip fi;
       node[me].followed = map; printf("node %d reads epoch %d\n", me, EPOCH(map)) }
  /* The first map of the series is there. */
  :: atomic { node[me].lives && node[me].part && node[me].followed != ABSENT && !created && SERIES_OF(node[me].followed) == series ->
       created = true; read_settings() }
  /* It leaves, or could not take part after all. */
  :: atomic { node[me].lives && node[me].part && HAS_ENDED(me) && !calm ->
       node[me].part = false; node[me].shows = 0; node[me].given_up = false;
       if
       :: node[me].left = true
       :: node[me].followed == ABSENT -> node[me].series = 0; node[me].created = false
       fi;
       printf("the lease of node %d shows no more that it takes part\n", me) }
  /* T4. What must never happen: two owners, and a token that was there before. */
  :: atomic { node[me].lives && !node[me].left && OWNS(me) && node[me].works == 0 && !node[me].given_up ->
       printf("node %d starts with token %d\n", me, TOKEN(node[me].followed));
       do :: i < NODES -> assert(i == me || node[i].works == 0); i++ :: i == NODES -> break od;
       i = 0;
       assert(TOKEN(node[me].followed) > last);
       last = TOKEN(node[me].followed); node[me].works = last }
  /* T8 */
  :: atomic { STOPS && node[me].works > 0 && !(OWNS(me) && TOKEN(node[me].followed) == node[me].works) ->
       node[me].works = 0; printf("node %d has stopped what is not its own any more\n", me) }
  :: atomic { node[me].lives && node[me].part && node[me].followed != ABSENT && node[me].shows != EPOCH(node[me].followed) &&
       (FROZEN(node[me].followed) && HAS_STOPPED(me) || SHOWS_ALL && !FROZEN(node[me].followed)) ->
       node[me].shows = EPOCH(node[me].followed); printf("the lease of node %d shows epoch %d\n", me, node[me].shows) }
  /* T5. A write is sent to the map that is followed; by an earlier one it is refused. */
  :: atomic { node[me].lives && OWNS(me) && node[me].base != node[me].followed && (!calm || node[me].given_up) ->
       node[me].works = 0; node[me].given_up = !node[me].left;
       if :: !NEVER_AGAIN(node[me].followed) -> node[me].base = node[me].followed :: else -> skip fi;
       printf("node %d sends a hand-on\n", me) }
  /* T6, T9: a shard without an owner is given to any node. */
  :: atomic { node[me].lives && HAS_MARKED(me) && KNOWS_CREATED(me) && node[me].followed != ABSENT && !FROZEN(node[me].followed) &&
       OWNER(node[me].followed) == NO_OWNER && node[me].base != node[me].followed && !NEVER_AGAIN(node[me].followed) ->
       node[me].base = node[me].followed; printf("node %d gives the shard\n", me) }
  :: atomic { node[me].base != ABSENT && map == node[me].base && !IS_FULL(map) && (!calm || MAY_RUN(me)) ->
       do :: i < NODES - 1 -> i++ :: break od;
       if
       :: calm -> i = me
       :: !calm && (OWNER(map) == me || !node[i].lives) -> i = NO_OWNER
       :: !calm && node[i].lives -> skip
       fi;
       map = MAP(EPOCH(map) + 1, i, (i == NO_OWNER -> 0 : EPOCH(map) + 1), 0);
       node[me].base = ABSENT; map_changes() }
  :: atomic { node[me].base != ABSENT && (!calm || map != node[me].base || !MAY_RUN(me)) -> node[me].base = ABSENT }
  /* A repair reads the leases, one after the other. */
  :: atomic { WAITS_FOR(0, me) -> founder[0].done = founder[0].done | (1 << me) }
  :: atomic { WAITS_FOR(1, me) -> founder[1].done = founder[1].done | (1 << me) }
  /* T7: its work has ended. */
  :: atomic { node[me].lives && (!calm || node[me].left) ->
       printf("the tenure of node %d is over\n", me);
       node[me].lives = false; node[me].part = false; node[me].left = false; node[me].shows = 0;
       node[me].series = 0; node[me].created = false;
       /* Its last write may yet be applied. */
       node[me].followed = ABSENT; node[me].works = 0; node[me].given_up = false;
       wipe(map); wipe(copy); wipe(founder[0].base); wipe(founder[1].base);
       do :: i < NODES -> wipe(node[i].followed); wipe(node[i].base); i++ :: i == NODES -> break od;
       i = 0 }
  od
}

/* ---- A founder ---- */

/* In the calm a founder does what is needed, and one at a time. */
#define IS_NEEDED (founder[1 - f].does == IDLE && (map == ABSENT || SERIES_OF(map) != series || FROZEN(map) || put_back))
#define FIRST_MAP MAP(founder[f].first, NO_OWNER, 0, FREEZES)
#define IS_SUPERSEDED (founder[f].does == WRITING && map != ABSENT && EPOCH(map) >= founder[f].first && founder[f].next == ABSENT || \
  founder[f].does == WAITING && map != FIRST_MAP)

proctype found(byte f) {
  byte i;
end:
  do
  /* It draws the next series, by compare-and-swap of cluster.json. */
  :: atomic { founder[f].does == IDLE && founder[f].next == ABSENT &&
       series < (calm -> ALL_SERIES : SERIES) && (!calm || IS_NEEDED) ->
       series++;
       founder[f].repairs = REPAIRS; founder[f].first = (founder[f].repairs -> FIRST_OF_REPAIR : FIRST(series));
       founder[f].does = WRITING;
       printf("founder %d draws series %d, repairs %d\n", f, series, founder[f].repairs) }
  :: atomic { RESUMES && founder[f].does == IDLE && founder[f].next == ABSENT &&
       map != ABSENT && FROZEN(map) && SERIES_OF(map) == series ->
       founder[f].repairs = true; founder[f].first = FIRST(series); founder[f].does = WAITING;
       printf("founder %d continues with series %d\n", f, series) }
  /* It replaces what is there, if that is of an earlier series; also again, after a certain refusal. */
  :: atomic { founder[f].does == WRITING && founder[f].next == ABSENT && (map == ABSENT || EPOCH(map) < founder[f].first) ->
       founder[f].base = map; founder[f].next = FIRST_MAP;
       printf("founder %d writes the first map of its series\n", f) }
  :: atomic { founder[f].next != ABSENT && map == founder[f].base ->
       map = founder[f].next; put_back = false;
       if :: founder[f].next = ABSENT; founder[f].base = ABSENT :: !SENT_ONCE fi;
       if
       :: founder[f].does == WRITING -> founder[f].does = WAITING
       :: founder[f].does == OPENING -> forget(f)
       :: else -> skip
       fi;
       map_changes() }
  :: atomic { founder[f].next != ABSENT && (map != founder[f].base || founder[f].does == IDLE && !calm) -> refuse(f) }
  :: atomic { founder[f].does == WAITING && !founder[f].repairs ->
       if :: SERIES_OF(FIRST_MAP) == series && !created -> created = true; printf("founder %d: created\n", f) :: else -> skip fi;
       forget(f) }
  /* All leases are done with: it opens the map. */
  :: atomic { founder[f].does == WAITING && founder[f].repairs && founder[f].done == (1 << NODES) - 1 && founder[f].next == ABSENT ->
       founder[f].base = FIRST_MAP; founder[f].next = MAP(founder[f].first + 1, NO_OWNER, 0, 0);
       founder[f].does = OPENING; printf("founder %d opens the map\n", f); refuse_outdated(f) }
  /* It ends, or it sees that the map is not its own any more. What it wrote may yet be applied, or never. */
  :: atomic { founder[f].does != IDLE && (!calm || IS_SUPERSEDED) -> forget(f); printf("founder %d has gone\n", f) }
  od
}

#ifdef CALM
/* From every state: once disturbances stop, the shard runs by the present map, or no node is there. */
proctype judge() {
  byte n;
  bool runs, some;
  timeout;
  atomic {
    do
    :: n < NODES ->
       runs = runs || node[n].works > 0 && OWNER(map) == n && TOKEN(map) == node[n].works; some = some || node[n].lives; n++
    :: n == NODES -> break
    od;
    assert(!calm || runs || !some)
  }
}
#endif

init {
  atomic {
    byte i;
#ifdef BEGUN /* the beginning is past */
    series = 1; created = true; map = MAP(1, NO_OWNER, 0, 0);
#endif
    do :: i < NODES -> run task(i); i++ :: i == NODES -> break od;
    run found(0); run found(1); run damage()
#ifdef CALM
    ; run judge()
#endif
  }
}
