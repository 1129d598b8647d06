/*
 * The protocol of one node id as a model for SPIN: two tasks, the lease object, the network, an operator, and time.
 *
 * SPIN tries every order of the steps below, an atomic { } being one step. A pause, a slow process, a late reply: each is an order in which
 * others go first, so none of them needs a line of its own. docs/design/model.md says how to run it and what it leaves out; the rules are
 * those of docs/design/protocol.md. A -D of one of the names at the planted bugs puts that mistake in.
 *
 * Nothing counts tenures, renewals or forced releases: there may be any number of each.
 */

/* Ticks of the store's clock. They are moments: an age of n ticks is a little more than n, so `age >= n` says "older than n". */
#if defined(ROUNDED_DOWN) || defined(HALF_OF_REST)
#define DURATION 4
#endif
#ifndef DURATION
#define DURATION 3
#endif
#define GRACE 1
/* How long before the deadline a holder gives up (rule 6: at five sixths). */
#define MARGIN 1

/*
 * With TUNED the duration changes: a claim and a renewal have SHORT or DURATION, as any memory of the settings may have it. So there is no
 * settings object: contenders go by the duration in the lease.
 */
#ifndef SHORT
#define SHORT 2
#endif

/* ---- The planted bugs ---- */

#ifdef SHORTER_AT_ONCE /* rule 14: a renewal has the duration of the settings, however much is left */
#define TUNED
#endif
#ifdef LONGER_WHEN_READ /* rule 14: a longer duration counts for the last write as soon as it is read */
#define TUNED
#endif
#ifdef ROUNDED_DOWN /* rule 14: what is left is rounded down */
#define TUNED
#endif
#ifdef HALF_OF_REST /* rule 14: a renewal has half of what is left, or the duration of the settings */
#define TUNED
#endif

/* Another reading: a renewal has the duration of the settings, and a holder believes until the smallest deadline of its known write and of
 * all that it has sent since. */
#ifdef READ_BACK_CLEARS /* with the smallest deadline: a read of the known write clears the later ones */
#define SMALLEST
#endif
#ifdef NEWEST_BOUND /* with the smallest deadline: of the later writes only the latest counts */
#define SMALLEST
#endif
#ifdef REFUSAL_CLEARS /* with the smallest deadline: a refusal clears all later ones, though one of them may have caused it */
#define SMALLEST
#endif
#ifdef SMALLEST
#define TUNED
#define LEFT(t) (known[t].left < bound[t] -> known[t].left : bound[t])
#define UNBOUND(t) bound[t] = FOR_EVER
#define FOR_EVER 15
#else
#define LEFT(t) known[t].left
#define UNBOUND(t) skip
#endif

#ifdef EVICT_BY_SETTINGS /* rule 9: a tombstone has the duration of the settings, not that of the lease */
#define TUNED
#define TRUSTED_FOR SHORT
#else
#define TRUSTED_FOR object.lasts
#endif

#ifdef NO_GRACE /* rule 4: a contender waits for the duration alone */
#define LIMIT object.lasts
#elif defined(BY_SETTINGS) /* rule 4: a contender goes by the duration of the settings, not by that of the lease */
#define TUNED
#define LIMIT (SHORT + GRACE)
#else
#define LIMIT (object.lasts + GRACE)
#endif

#ifdef UPPER_AGE /* rule 4: a contender goes by the upper bound of the age, which the store reports as an interval around the true one */
#define REPORTED_AGE (object.age + 1)
#elif defined(WALL_CLOCK) /* rule 4: a contender goes by its own wall clock, which may say anything */
#define REPORTED_AGE LIMIT
#else
#define REPORTED_AGE object.age
#endif

#ifdef BELIEVE_TIMER /* rule 3: a holder believes until a timer fires when time is up, and timers are late */
#define WORKING(t) works[t]
#else
#define WORKING(t) (works[t] && LEFT(t) > 0)
#endif

#ifdef DEADLINE_FROM_REPLY /* rule 3: the deadline counts from the reply */
#define SENT_AT_REPLY(w) start(w)
#else
#define SENT_AT_REPLY(w) skip
#endif

#ifdef CREDIT_NEWEST /* rules 3 and 5: after a read-back the deadline counts from the latest attempt, not from the write that stands there */
#define LEFT_OF(w, t) latest[t]
#else
#define LEFT_OF(w, t) w.left
#endif

#ifdef REVIVE /* rule 3: a reply or a look at the object that comes after the deadline brings the tenure back */
#define NOT_OVER(t) true
#else
#define NOT_OVER(t) (LEFT(t) > 0)
#endif

#ifdef UNKNOWN_IS_APPLIED /* rule 5: a write of unknown outcome is taken as applied */
#define SHOWN(w) (w.at != nowhere)
#else
#define SHOWN(w) w.stands
#endif

#ifdef TASK_ID_ONLY /* rule 5: a task knows its own claim by task id and version, not by the mark of the attempt */
#define CLAIM_SHOWN(t) (object.body == held && object.holder == t && newest[t].version == NOW)
#else
#define CLAIM_SHOWN(t) SHOWN(newest[t])
#endif

#ifdef RENEW_BLINDLY /* rule 6: a renewal without If-Match */
#define RENEWAL_MATCH(t) anything
#else
#define RENEWAL_MATCH(t) (known[t].stands -> current : outdated)
#endif

#ifdef RELEASE_BEFORE_END /* rule 8: the tombstone is written while the work goes on */
#define END_WORK(t) skip
#else
#define END_WORK(t) works[t] = false
#endif

#ifdef EMPTY_RELEASE /* rule 2: a release writes an empty body, with the version in its metadata */
#define RELEASE_BODY vacant
#define RELEASE_VERSION(t) version[t]
#elif defined(FORGET_VERSION) /* rule 2: a release writes an empty body, and no version anywhere */
#define RELEASE_BODY vacant
#define RELEASE_VERSION(t) NONE
#else
#define RELEASE_BODY tombstone
#define RELEASE_VERSION(t) version[t]
#endif

#ifdef EVICT_AT_ONCE /* rules 1 and 9: an id released by force may be taken at once */
#define STILL_TRUSTED false
#else
#define STILL_TRUSTED (REPORTED_AGE < LIMIT)
#endif

#ifdef PROOF_AT_ONCE /* T6 of shards: a reader takes the tombstone of a forced release for a proof, whatever its age */
#define PROOFS
#define TRUST_ENDED true
#else
#define TRUST_ENDED (!object.trusted || object.age >= LIMIT)
#endif

/* ---- What there is ---- */

/* Versions relative to the one in the object, which is NOW. NOW + 1 is the next one, OLD stands for all that are older. */
#define NONE 0
#define OLD 1
#define NOW 2

/* Vacant has an empty body and was never held. Each other body is unlike every other, by nonce, renewal or version (rule 2). */
mtype:body = { vacant, held, tombstone };

/*
 * The etag in an If-Match. It is a hash of the body, so one of a body that never comes back is either current, or outdated for ever.
 * The empty body's is the exception: it fits whenever the object is empty. anything is a write without If-Match.
 */
mtype:etag = { outdated, current, of_vacant, anything };

/*
 * Where a write is. under_way: its sender waits. late: its sender has given it up, and it may be applied yet. applied, refused: the reply is
 * under way. unheard: applied, and the sender has given up. A write for which no task waits and that cannot be applied is nowhere.
 */
mtype:place = { nowhere, planned, under_way, late, applied, refused, unheard };

typedef Write {
  mtype:place at;
  mtype:body body;
  mtype:etag match;
  byte version;
  bool claims;  /* It begins a tenure. */
  byte lasts;   /* The duration in it. */
  byte left;    /* Rule 3: ticks until its sender's monotonic clock, read before it was sent, has counted the duration. */
  bool stands   /* It is what stands in the object. */
};

typedef Object {
  mtype:body body;
  byte holder;
  byte lasts;   /* The duration in it; in a trusted tombstone that of the lease that it replaced. */
  bool trusted; /* A tombstone of a forced release whose holder may still trust its lease (`durationMs` > 0, rule 9). */
  byte age      /* Since it was written, by the store's clock; as long as somebody asks for it. */
};

Object object;

/* Of each task: its version or NONE; whether its work goes on; the last write known to be applied; the latest write; an earlier one that is late. */
byte version[2];
bool works[2];
Write known[2];
Write newest[2];
Write earlier[2];
#ifdef CREDIT_NEWEST
byte latest[2];
#endif
#ifdef SMALLEST
/* The smallest deadline of the writes that were sent after the last one known to be applied. */
byte bound[2];
#endif
#ifdef TUNED
byte remains;
#endif

#define IN_TIME(w) (w.left > MARGIN)
#define ON_TIME(t) (LEFT(t) > MARGIN)
#define FREE (object.body == vacant || object.body == tombstone && !object.trusted || REPORTED_AGE >= LIMIT) /* rule 4: lease-state.ts, availability() */
#define FITS(w) (w.match == current || w.match == anything || w.match == of_vacant && object.body == vacant)
#define MINE(t) (object.body == held && (SHOWN(newest[t]) || SHOWN(earlier[t]) || known[t].stands))
/* A bound: of all writes, one at a time is late; with EACH_LATE, one of each task. */
#ifdef EACH_LATE
#define SOME_LATE (newest[t].at == late || earlier[t].at == late)
#else
#define SOME_LATE (newest[0].at == late || newest[1].at == late || earlier[0].at == late || earlier[1].at == late)
#endif

/* ---- What must never happen ---- */

/* Rule 1, looked at after every step. A task works, or believes that it may, while its own clock is before its deadline. */
never {
  do
  :: assert(!(WORKING(0) && WORKING(1)))
  od
}

/* Rule 2: what is written has a version, never a lower one than before, and a higher one where it begins a tenure; no two tasks have the same. */
#define VERSION_KEPT(w) (w.version >= (w.claims -> NOW + 1 : NOW))
#define VERSION_MY_OWN (version[0] != version[1] || version[0] == OLD)

/* Rule 3: a tenure whose deadline has passed is over. A task that reads that a lease has expired may rely on it. */
#define NEVER_REVIVED(t) (LEFT(t) > 0)

#ifdef PROOFS
/* Whether a reader has been able to see that the lease of task t has expired. */
bool expired[2];
#define IN_TENURE(t) (works[t] || newest[t].claims)

/*
 * T0 and T6 of docs/design/shards.md: a tenure that the object shows to be over does not work, and never will. The object
 * shows a later version, a tombstone that may be trusted no more, or the tenure's own lease, expired, now or earlier.
 */
#define PROVEN_OVER(t) (expired[t] || version[t] != NONE && \
  (object.body == held && version[t] == OLD || object.body == tombstone && TRUST_ENDED))

proctype reader(byte t) {
  do
  :: atomic { PROVEN_OVER(t) -> assert(!WORKING(t)) }
  od
}
#endif

/* ---- The store ---- */

inline forget(w) {
  w.at = nowhere; w.body = vacant; w.match = outdated; w.version = NONE; w.claims = false; w.left = 0; w.lasts = 0; w.stands = false
}

/* The object has changed: an etag of what stood there is good for nothing any more. */
inline outdate(w) {
  w.stands = false;
  if
  :: w.match == current && w.at == under_way -> forget(w); w.at = refused
  :: w.match == current && w.at == late -> forget(w)
  :: w.match == current && w.at == planned -> w.match = outdated
  :: else -> skip
  fi;
  if :: w.at == unheard -> forget(w) :: else -> skip fi
}
inline object_changes() {
  known[0].stands = false; outdate(newest[0]); outdate(earlier[0]);
  known[1].stands = false; outdate(newest[1]); outdate(earlier[1])
}

inline outgrow(number) {
  if :: number > OLD -> number-- :: else -> skip fi
}
inline version_rises() {
  outgrow(version[0]); outgrow(newest[0].version); outgrow(earlier[0].version);
  outgrow(version[1]); outgrow(newest[1].version); outgrow(earlier[1].version)
}

/* Replaces the object if the etag is the object's. */
inline apply(w, t) {
  assert(VERSION_KEPT(w));
  printf("store: applies what task %d wrote\n", t);
  object.body = w.body;
  object.holder = (w.body == held -> t : 0);
  object.lasts = w.lasts;
  object.trusted = false;
  object.age = 0;
#ifdef PROOFS
  if :: w.claims -> expired[t] = false :: else -> skip fi;
#endif
  w.match = outdated;
  w.at = applied;
  object_changes();
  if :: w.version > NOW -> version_rises() :: else -> skip fi;
  w.stands = true
}

proctype network(byte t) {
  do
  :: atomic { newest[t].at == under_way && FITS(newest[t]) -> apply(newest[t], t) }
  /* An etag that does not fit, or a 409 because something concurrent is in the way: it was not applied. */
  :: atomic { newest[t].at == under_way -> printf("store: refuses what task %d wrote\n", t); forget(newest[t]); newest[t].at = refused }
  :: atomic { newest[t].at == late && FITS(newest[t]) -> apply(newest[t], t); newest[t].at = unheard }
  :: atomic { earlier[t].at == late && FITS(earlier[t]) -> apply(earlier[t], t);
       if
       :: earlier[t].body == held && earlier[t].version == version[t] -> earlier[t].at = unheard
       :: else -> forget(earlier[t])
       fi }
  /* Never. */
  :: atomic { earlier[t].at == late -> forget(earlier[t]) }
  od
}

/* ---- A task ---- */

/*
 * The clock is read, then the request is sent (rule 3). What a lease rests on: between a write and a later look at the object the store's
 * clock counts at most the grace more than this one does. A slow clock is GRACE ticks short; one that is fast ends a lease early.
 */
inline start(w) {
#ifdef TUNED
  if :: w.lasts = SHORT :: w.lasts = DURATION fi;
#else
  w.lasts = DURATION;
#endif
  if :: w.left = w.lasts :: w.left = w.lasts + GRACE fi
}

#if !defined(TUNED) || defined(SHORTER_AT_ONCE) || defined(SMALLEST)
#define START_RENEWAL(t) start(newest[t])
#else
#define START_RENEWAL(t) never_back(newest[t], t)
#endif
#ifdef ROUNDED_DOWN
#define ROUNDED (remains > 0 -> remains - 1 : 0)
#elif defined(HALF_OF_REST)
#define ROUNDED ((remains + 1) / 2)
#else
#define ROUNDED remains
#endif
/*
 * Rule 14. What its own clock says is left until the known deadline is up to GRACE ticks less than the store's clock will count. By the same
 * clock the renewal's deadline is no earlier, unless it is too short.
 */
inline never_back(w, t) {
  if :: w.lasts = SHORT :: w.lasts = DURATION fi;
  if :: remains = known[t].left :: remains = known[t].left - GRACE fi;
  if :: remains > known[t].lasts -> remains = known[t].lasts :: else -> skip fi;
  remains = ROUNDED;
  if :: w.lasts < remains -> w.lasts = remains :: else -> skip fi;
#if defined(ROUNDED_DOWN) || defined(HALF_OF_REST)
  if :: w.left = w.lasts :: w.left = w.lasts + GRACE fi;
#else
  w.left = (w.lasts > known[t].left -> w.lasts : known[t].left);
  if :: w.left < w.lasts + GRACE -> w.left++ :: skip fi;
#endif
  remains = 0
}

inline go(t) {
  newest[t].at = under_way;
  if
  :: newest[t].body == held && newest[t].claims -> start(newest[t])
  :: newest[t].body == held && !newest[t].claims -> START_RENEWAL(t);
#ifdef NEWEST_BOUND
     bound[t] = newest[t].left
#elif defined(SMALLEST)
     if :: newest[t].left < bound[t] -> bound[t] = newest[t].left :: else -> skip fi
#else
     skip
#endif
  :: else -> skip
  fi
#ifdef CREDIT_NEWEST
  ; latest[t] = newest[t].left
#endif
}
inline send(t, the_body, the_match, the_version) {
  make_room(t);
  newest[t].body = the_body; newest[t].match = the_match; newest[t].version = the_version;
  go(t)
}

inline make_room(t) {
  if
  :: newest[t].at == late ->
     earlier[t].at = late; earlier[t].body = newest[t].body; earlier[t].match = newest[t].match; earlier[t].version = newest[t].version;
     earlier[t].claims = newest[t].claims; earlier[t].left = newest[t].left; earlier[t].lasts = newest[t].lasts
  :: else -> skip
  fi;
  forget(newest[t])
}

/* A time-out, a lost connection, 500 or 503. The write has been applied or refused, or it will be applied later, or never. */
inline give_up(t) {
  printf("task %d: has no answer in time\n", t);
  if
  :: newest[t].at == under_way && !SOME_LATE -> newest[t].at = late
  :: newest[t].at == under_way || newest[t].at == refused ->
#ifdef UNKNOWN_IS_APPLIED
     newest[t].at = unheard
#else
     forget(newest[t])
#endif
  :: newest[t].at == applied -> newest[t].at = unheard
  fi
}

/* The last write known to be applied is this one: its etag, and the deadline by when it was sent (rule 3). */
inline adopt(t, w, ticks) {
  known[t].left = ticks; known[t].stands = w.stands; known[t].lasts = w.lasts;
  UNBOUND(t);
  forget(w)
}

inline begin(t) {
  version[t] = newest[t].version;
  assert(VERSION_MY_OWN);
  works[t] = true;
  printf("task %d: holds the id\n", t);
  adopt(t, newest[t], newest[t].left)
}

/* Rule 5: keeper.ts, #readBack(). Which of this tenure's writes does the object show? */
inline read_back(t) {
  printf("task %d: sees that its own write stands\n", t);
  if
  :: SHOWN(newest[t]) -> adopt(t, newest[t], LEFT_OF(newest[t], t))
  :: !SHOWN(newest[t]) && SHOWN(earlier[t]) -> adopt(t, earlier[t], LEFT_OF(earlier[t], t))
  :: !SHOWN(newest[t]) && !SHOWN(earlier[t]) ->
#ifdef READ_BACK_CLEARS
     UNBOUND(t)
#else
     known[t].left = LEFT_OF(known[t], t)
#endif
  fi
}

/* Rule 8: first the work ends. */
inline leave(t) {
  END_WORK(t);
  printf("task %d: releases\n", t)
}
/* Rule 7: the work ends with the tenure. What is late stays late. */
inline end(t) {
  printf("task %d: has ended\n", t);
#ifdef PROOFS
  expired[t] = false;
#endif
  works[t] = false; version[t] = NONE; known[t].left = 0; known[t].lasts = 0; known[t].stands = false;
  UNBOUND(t);
  make_room(t);
  if :: earlier[t].at == late -> earlier[t].left = 0 :: else -> forget(earlier[t]) fi
}

proctype task(byte me) {
contend: /* acquirer.ts: the object is read; any time may pass before the answer is acted upon. */
  atomic { FREE ->
    printf("task %d: sees that the id is free\n", me);
    newest[me].at = planned; newest[me].version = NOW + 1; newest[me].match = (object.body == vacant -> of_vacant : current) };

  /* claim.ts, take(): the next version, if the object is still as it was read. */
  atomic { printf("task %d: claims it\n", me); newest[me].body = held; newest[me].claims = true; go(me) };
  if
  :: atomic { newest[me].at == applied && IN_TIME(newest[me]) -> SENT_AT_REPLY(newest[me]); begin(me); goto hold }
  :: atomic { newest[me].at == applied && !IN_TIME(newest[me]) -> end(me); goto contend }
  :: atomic { newest[me].at == refused -> end(me); goto contend }
  :: atomic { give_up(me) }
  fi;
  /* Rule 5: claim.ts, #readBack(). */
  if
  :: atomic { CLAIM_SHOWN(me) && IN_TIME(newest[me]) -> begin(me) }
  :: atomic { end(me); goto contend }
  fi;

hold: /* holder.ts, #keep(). The deadline of known is what isValid() compares with the clock (rule 3). */
  if
#ifdef LONGER_WHEN_READ
  :: atomic { LEFT(me) > 0 && known[me].lasts == SHORT ->
       printf("task %d: reads a longer duration\n", me);
       known[me].left = known[me].left + DURATION - SHORT; known[me].lasts = DURATION; goto hold }
#endif
  :: atomic { ON_TIME(me) -> printf("task %d: renews\n", me); send(me, held, RENEWAL_MATCH(me), version[me]) }
  :: atomic { LEFT(me) > 0 -> leave(me);
       send(me, RELEASE_BODY, (known[me].stands -> current : outdated), RELEASE_VERSION(me)); goto give_back }
  :: atomic { end(me); goto contend } /* A crash, whose guard ends the work; or rules 6 and 7, out of time. */
  fi;
renewing:
  if
  :: atomic { newest[me].at == applied && NOT_OVER(me) ->
       assert(NEVER_REVIVED(me)); SENT_AT_REPLY(newest[me]); adopt(me, newest[me], newest[me].left); goto hold }
  :: atomic { newest[me].at == applied && !NOT_OVER(me) -> end(me); goto contend }
  /* A refusal such as 403: it was certainly not applied, and says nothing of the object. */
  :: atomic { newest[me].at == under_way || newest[me].at == refused ->
       printf("task %d: may not write\n", me); forget(newest[me]); goto hold }
  :: atomic { newest[me].at == refused -> forget(newest[me])
#ifdef REFUSAL_CLEARS
     ; bound[me] = (earlier[me].at == late -> earlier[me].left : FOR_EVER)
#endif
     }
  :: atomic { give_up(me) }
  fi;

doubt: /* Rules 5 and 6: what became of the renewal is not known. */
  if
  :: atomic { MINE(me) && NOT_OVER(me) -> assert(NEVER_REVIVED(me)); read_back(me); goto hold }
  /* The write that follows in the same attempt, which may have begun before the stop point. */
  :: atomic { MINE(me) && NOT_OVER(me) -> assert(NEVER_REVIVED(me)); read_back(me); send(me, held, RENEWAL_MATCH(me), version[me]); goto renewing }
  :: atomic { !MINE(me) -> printf("task %d: finds that the lease is lost\n", me); end(me); goto contend }
  :: atomic { !ON_TIME(me) -> end(me); goto contend }
  :: atomic { LEFT(me) > 0 -> leave(me); goto release }
  fi;

release: /* Rule 8: keeper.ts, giveBack(). The object is read wherever the etag may be out of date. The deadline may have passed. */
  if
  :: atomic { MINE(me) -> read_back(me); send(me, RELEASE_BODY, (known[me].stands -> current : outdated), RELEASE_VERSION(me)) }
  :: atomic { end(me); goto contend }
  fi;
give_back:
  if
  :: atomic { newest[me].at == applied -> end(me); goto contend }
  :: atomic { newest[me].at == refused -> forget(newest[me]); goto release }
  :: atomic { give_up(me); goto release }
  fi
}

/*
 * Rule 9: evict.ts. Reading and writing are one step: however late the write is, it is applied only if the object is still as it was read.
 * The version rises. The holder hears nothing of it.
 */
proctype operator() {
  do
  :: atomic { object.body == held ->
       printf("operator: the id is released by force\n");
       object.trusted = STILL_TRUSTED; object.lasts = (object.trusted -> TRUSTED_FOR : 0);
       object.body = tombstone; object.holder = 0; object.age = 0;
       object_changes(); version_rises() }
  od
}

/* ---- Time ---- */

inline count_down(w) {
  if :: w.left > 0 -> w.left-- :: else -> skip fi
}
proctype clock() {
  do
  :: atomic {
       printf("a tick\n");
       if :: (object.body == held || object.trusted) && object.age < LIMIT -> object.age++ :: else -> skip fi;
#ifdef PROOFS
       if :: object.body == held && object.age == LIMIT && IN_TENURE(object.holder) -> expired[object.holder] = true :: else -> skip fi;
#endif
       count_down(known[0]); count_down(newest[0]); count_down(earlier[0]);
       count_down(known[1]); count_down(newest[1]); count_down(earlier[1]);
#ifdef CREDIT_NEWEST
       if :: latest[0] > 0 -> latest[0]-- :: else -> skip fi;
       if :: latest[1] > 0 -> latest[1]-- :: else -> skip fi
#endif
#ifdef SMALLEST
       if :: bound[0] > 0 && bound[0] < FOR_EVER -> bound[0]-- :: else -> skip fi;
       if :: bound[1] > 0 && bound[1] < FOR_EVER -> bound[1]-- :: else -> skip fi
#endif
     }
  od
}

init {
  atomic {
    object.body = vacant;
    forget(known[0]); forget(newest[0]); forget(earlier[0]);
    forget(known[1]); forget(newest[1]); forget(earlier[1]);
    UNBOUND(0); UNBOUND(1);
    run task(0); run network(0); run task(1); run network(1); run operator(); run clock()
#ifdef PROOFS
    ; run reader(0); run reader(1)
#endif
  }
}
