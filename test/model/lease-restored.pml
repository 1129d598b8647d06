/*
 * A store that goes back in time, as a model for SPIN: rules 10 to 13 of docs/design/protocol.md, with what they need of
 * rules 1 to 8. lease.pml has those in full.
 *
 * There are two tasks, one node id, the record of the epoch in cluster.json, and the store. At any moment the store goes
 * back to an earlier state of both objects. A pause, a slow process, a late or lost reply: each is an order in which others
 * go first, so none of them needs a line of its own. An atomic { } is one step. A -D of one of the names at the planted bugs
 * puts that mistake in.
 */

/* ---- Bounds ---- */

/* How often the store goes back; how many acquiring writes there are. Renewals have no limit. */
#ifndef LOSSES
#define LOSSES 2
#endif
#ifndef CLAIMS
#define CLAIMS 3
#endif
/* Ticks of the store's clock: an age of n ticks is a little more than n. */
#ifndef DURATION
#define DURATION 1
#endif
#define GRACE 1
#define LIMIT (DURATION + GRACE)

/*
 * Rule 12. LOST is more than the versions that a store loses. Store time brings as many in a duration and a grace. At
 * least that is between takes in two epochs (rule 10), so the number of the epoch is a store time that is never too great.
 */
#define LOST (CLAIMS + 1)

/* ---- The planted bugs ---- */

#ifdef NO_QUIET /* rule 10: ids are taken as soon as the new epoch is recorded */
#define IS_QUIET_OVER(t) true
#elif defined(FREE_AT_ONCE) /* rule 10: held leases wait, free ids do not */
#define IS_QUIET_OVER(t) (record.age >= LIMIT || object.body != held)
#elif defined(QUIET_NO_GRACE) /* rule 10: the wait is the duration alone */
#define IS_QUIET_OVER(t) (record.age >= DURATION)
#elif defined(QUIET_FROM_START) /* rule 10: the wait counts from when the contender first read the settings */
#define IS_QUIET_OVER(t) (waited[t] >= LIMIT)
#else
#define IS_QUIET_OVER(t) (record.age >= LIMIT)
#endif

#ifdef OLD_RECORD /* rule 11: a record of an earlier epoch, which came back, counts */
#define IS_RECORDED true
#else
#define IS_RECORDED record.present
#endif

#ifdef NO_SECOND_LOOK /* rule 11: the store is not asked for its epoch after the acquiring write */
#define IS_SAME_EPOCH(t) true
#else
#define IS_SAME_EPOCH(t) (told[t] == epoch)
#endif

#ifdef VACANT_STAYS /* rule 12: an id that no task has held begins at version 1 */
#define LEAPS(w, the_mark) (w.body != vacant && w.mark != the_mark)
#else
#define LEAPS(w, the_mark) (w.mark != the_mark)
#endif

#ifdef NO_LEAP /* rule 12: the next version is one more */
#define LEAP(version, number) ((version) + 1)
#elif defined(ONE_FLOOR) /* rule 12: versions leap by number alone */
#define LEAP(version, number) ((version) + LOST + 1)
#elif defined(FAR_LEAP) /* rule 12: the leap by number counts where it is above store time */
#define LEAP(version, number) MAX((version) + 2 * LOST, BY_TIME(number)) + 1
#else
#define LEAP(version, number) (BY_TIME(number) > (version) -> BY_TIME(number) : (version) + LOST) + 1
#endif

#ifdef COARSE_TIME /* rule 12: the store time is read in steps of more than a duration and a grace */
#define BY_TIME(number) ((number) / 2 * LOST)
#else
#define BY_TIME(number) ((number) * LOST)
#endif

#ifdef TOMBSTONE_UNMARKED /* rule 12: a tombstone has no mark of the epoch, so each tenure leaps */
#define MARK_OF(w) (w.body == tombstone -> NO_MARK : w.mark)
#else
#define MARK_OF(w) w.mark
#endif

#ifdef READ_COUNTS /* rule 13: the deadline counts from the read that shows an earlier write */
#define COUNT_READ(t) start(known[t])
#else
#define COUNT_READ(t) skip
#endif

#ifdef OLDER_IS_LOST /* rule 13: an earlier write of the own tenure counts as the loss of the lease */
#define IS_MINE(t) (OF_TENURE(t) && (object.etag == known[t].etag || SHOWN(newest[t]) || SHOWN(late)))
#else
#define IS_MINE(t) OF_TENURE(t)
#endif

#ifdef KEPT /* rule 13, no bug but what has to be possible: a holder whose object has fallen back in each epoch renews */
#define NOTE_FALL(t) fell[t] = fell[t] | 1 << epoch
#define NOT_KEPT(t) (fell[t] != (1 << LOSSES + 1) - 2)
#else
#define NOTE_FALL(t) skip
#define NOT_KEPT(t) true
#endif

/* ---- What there is ---- */

#define MAX(a, b) ((a) > (b) -> (a) : (b))

mtype:body = { vacant, held, tombstone };

/*
 * An etag is a number that no other write has for as long as anything here knows it. Etags come back with the objects.
 * NEVER is one that no object has, or will have again.
 */
#define NEVER 0
#define OF_VACANT 1
#define ETAGS 12

#define NO_MARK 9

typedef Object {
  mtype:body body;
  byte etag;
  byte claim;   /* The acquiring write of its tenure: the nonce. */
  byte version;
  byte mark;    /* The epoch in which its tenure began: an epoch is recorded once, so it has one mark. */
  bool free     /* Of a copy: whether a contender may have seen that it is free. */
};
Object object;
byte age;       /* Of the object, by the store's clock. What comes back may have any age, so it has the greatest one. */

byte epoch;     /* That the store tells. */
/* Of this epoch, in cluster.json. One of an earlier epoch, which came back or was written late, is none (rule 11). */
typedef Record { bool present; byte age };
Record record;
bool settled[LOSSES + 1]; /* Whether the record of an epoch was ever old enough. */

/* An earlier state, which can come back, also twice. It is kept when a write replaces it, once in an epoch. */
Object copy;
bool copies;

/* sent: it may be applied yet, or never. applied: the reply may arrive yet, or never. */
mtype:place = { nowhere, sent, applied };

typedef Write {
  mtype:place at;
  mtype:body body;
  byte match;   /* If-Match */
  byte etag;    /* What the object has once it is applied. */
  byte claim;
  byte version;
  byte mark;
  byte left     /* Rule 3: ticks until its sender's clock, read before it was sent, has counted the duration. */
};

/* Of each task: its tenure, with the etag and the deadline that it knows; its latest write; the epoch before it read the object. */
Write known[2];
Write newest[2];
byte told[2];
/* A write that its sender has given up, one at a time; its sender; whether a later write of that tenure is known to be applied. */
Write late;
byte sender;
bool older;
#ifdef QUIET_FROM_START
byte waited[2];
#endif
#ifdef KEPT
byte fell[2];   /* The epochs, as bits. */
#endif

byte claims;    /* Number of acquiring writes so far. */
byte top;       /* The highest version that a tenure had. */

#define HOLDS(t) (known[t].claim != 0)
#define WORKING(t) (known[t].left > 0)
#define FREE (object.body != held || age >= LIMIT) /* rule 4 */
#define SHOWN(w) (w.at != nowhere && object.etag == w.etag)
#define OF_TENURE(t) (object.body == held && object.claim == known[t].claim)
#define ALIVE(number) (object.etag == number || copy.etag == number)

/* ---- What must never happen ---- */

/* Rule 1, looked at after every step. */
never {
  do
  :: assert(!(WORKING(0) && WORKING(1)))
  od
}

/* Rule 2: each tenure has a higher version than all before it, also than those that the store has lost. */
#define VERSION_RISES(w) (w.version > top)

/* Rule 3 */
#define NEVER_REVIVED(t) (known[t].left > 0)

/* Rule 13: a lease is lost only where the object shows another tenure, or none. */
#define LOST_TO_ANOTHER(t) (!OF_TENURE(t))

/* ---- The store ---- */

inline forget(w) {
  w.at = nowhere; w.body = vacant; w.match = NEVER; w.etag = NEVER; w.claim = 0; w.version = 0; w.mark = 0; w.left = 0
}
inline forget_late() {
  forget(late); sender = 0; older = false
}

/* An etag that no object can have any more is no etag; what cannot be applied any more is forgotten, and what cannot be shown. */
inline tidy(t) {
  if :: !ALIVE(known[t].etag) -> known[t].etag = NEVER :: else -> skip fi;
  if :: !ALIVE(newest[t].match) -> newest[t].match = NEVER :: else -> skip fi;
  if
  :: newest[t].at == sent && newest[t].match == NEVER -> forget(newest[t]); if :: !HOLDS(t) -> told[t] = 0 :: else -> skip fi
  :: else -> skip
  fi
}
inline tidy_all() {
  tidy(0); tidy(1);
  if :: !ALIVE(late.match) -> late.match = NEVER :: else -> skip fi;
  if
  :: late.at == sent && late.match == NEVER || late.at == applied && (!ALIVE(late.etag) || late.left == 0 || older) -> forget_late()
  :: else -> skip
  fi
}

inline drop_copy() {
  copy.body = vacant; copy.etag = NEVER; copy.claim = 0; copy.version = 0; copy.mark = 0; copy.free = false
}
inline maybe_keep() {
  if
  :: !copies && epoch < LOSSES ->
     printf("store: the present state can come back\n");
     copies = true;
     copy.body = object.body; copy.etag = object.etag; copy.claim = object.claim; copy.version = object.version; copy.mark = object.mark;
     copy.free = FREE
  :: skip
  fi
}

/* Replaces the object if the etag is the object's. */
inline apply(w, t) {
  maybe_keep();
  printf("store: applies what task %d wrote, version %d\n", t, w.version);
  object.body = w.body; object.etag = w.etag; object.claim = w.claim; object.version = w.version; object.mark = MARK_OF(w);
  age = (w.body == held -> 0 : LIMIT);
  w.match = NEVER;
  w.at = applied;
  tidy_all()
}

proctype store() {
  do
  :: atomic { newest[0].at == sent && newest[0].match == object.etag -> apply(newest[0], 0) }
  :: atomic { newest[1].at == sent && newest[1].match == object.etag -> apply(newest[1], 1) }
  :: atomic { late.at == sent && late.match == object.etag -> apply(late, sender) }
  /* Some contender, which may have gone, has recorded the epoch. */
  :: atomic { !record.present -> printf("store: cluster.json has epoch %d\n", epoch); record.present = true; record.age = 0 }
  :: atomic { epoch < LOSSES ->
       if
       :: copy.etag != NEVER && copy.etag != object.etag ->
          object.body = copy.body; object.etag = copy.etag; object.claim = copy.claim; object.version = copy.version; object.mark = copy.mark
       :: skip
       fi;
       age = LIMIT; record.present = false; record.age = LIMIT; copies = false;
       epoch++;
       printf("store: has gone back, epoch %d\n", epoch);
       if :: epoch == LOSSES -> drop_copy() :: else -> skip fi;
       tidy_all() }
  od
}

/* ---- A task ---- */

/* As in lease.pml: a slow clock is GRACE ticks short. */
inline start(w) {
  if :: w.left = DURATION :: w.left = DURATION + GRACE fi
}

#define IS_ETAG_OF(w, number) (w.etag == number || w.match == number)
inline new_etag(w) {
  number = OF_VACANT + 1;
  do
  :: ALIVE(number) || known[0].etag == number || known[1].etag == number || IS_ETAG_OF(late, number) ||
     IS_ETAG_OF(newest[0], number) || IS_ETAG_OF(newest[1], number) -> number++
  :: else -> break
  od;
  assert(number < ETAGS);
  w.etag = number; number = 0
}

/* No answer comes in time. The write is applied late, or never; or it has been applied, or refused. */
inline give_up(t) {
  if
  :: newest[t].at == sent && late.at == nowhere ->
     late.at = sent; late.body = newest[t].body; late.match = newest[t].match; late.etag = newest[t].etag;
     late.claim = newest[t].claim; late.version = newest[t].version; late.mark = newest[t].mark; late.left = newest[t].left;
     sender = t; older = false
  :: skip
  fi;
  forget(newest[t])
}

inline send(t, the_body, the_match) {
  give_up(t);
  newest[t].body = the_body; newest[t].match = the_match;
  newest[t].claim = known[t].claim; newest[t].version = known[t].version; newest[t].mark = known[t].mark;
  new_etag(newest[t]);
  newest[t].at = sent
}

/* The last write known to be applied is this one: its etag, and the deadline by when it was sent (rule 3). A later one is not nearer. */
inline adopt(t, w) {
  if :: w.left > known[t].left -> known[t].left = w.left :: else -> skip fi;
  known[t].etag = (ALIVE(w.etag) -> w.etag : NEVER)
}
inline adopt_newest(t) {
  adopt(t, newest[t]); forget(newest[t]);
  if
  :: late.at == sent && sender == t && !older -> late.left = 0; older = true
  :: late.at == applied && sender == t -> forget_late()
  :: else -> skip
  fi
}

/* Rules 2 and 12: lease-state.ts, nextVersion(). */
inline take(w, the_epoch, the_mark) {
  printf("task %d: claims the id\n", me);
  claims++;
  told[me] = the_epoch;
  newest[me].body = held; newest[me].match = w.etag; newest[me].mark = the_mark; newest[me].claim = claims;
  if
  :: LEAPS(w, newest[me].mark) -> newest[me].version = LEAP(w.version, the_epoch)
  :: else -> newest[me].version = w.version + 1
  fi;
  new_etag(newest[me]);
  newest[me].at = sent;
  start(newest[me])
}

/* The id is the task's own now. */
inline begin(t) {
  assert(VERSION_RISES(newest[t]));
  printf("task %d: holds the id, version %d\n", t, newest[t].version);
  top = newest[t].version;
  told[t] = 0;
  known[t].claim = newest[t].claim; known[t].version = newest[t].version; known[t].mark = newest[t].mark;
  adopt_newest(t)
}

/* Rules 5 and 13: keeper.ts, #readBack() and #adopt(). A read that shows the latest write is like the reply to it. */
inline read_back(t) {
  assert(NEVER_REVIVED(t));
  if
  :: SHOWN(late) && sender == t && !older -> printf("task %d: sees its late write\n", t); adopt(t, late); forget_late()
  :: !(SHOWN(late) && sender == t && !older) ->
     printf("task %d: sees an earlier write of its own\n", t); known[t].etag = object.etag; NOTE_FALL(t); COUNT_READ(t)
  fi
}

/* Rule 7: the work ends with the tenure. What is late stays late. */
inline end(t) {
  printf("task %d: has ended\n", t);
  give_up(t);
  forget(known[t]); told[t] = 0;
  if :: late.at != nowhere && sender == t -> late.left = 0; older = false :: else -> skip fi;
#ifdef QUIET_FROM_START
  waited[t] = 0;
#endif
#ifdef KEPT
  fell[t] = 0;
#endif
  tidy_all()
}

/* Rule 8: keeper.ts, giveBack(). The work has ended. No reply is needed. */
inline release(t, the_match) {
  printf("task %d: releases\n", t);
  known[t].left = 0;
  send(t, tombstone, the_match);
  if
  :: the_match == object.etag -> apply(newest[t], t)
  :: skip
  fi;
  end(t)
}

/* A bound, and the tasks are alike: the first one is task 0. */
#define MAY_CLAIM(t) (claims < CLAIMS && (claims > 0 || t == 0) && !HOLDS(t) && newest[t].at == nowhere)

proctype task(byte me) {
  byte number;
  do
  /*
   * acquirer.ts and claim.ts: the settings and the epoch, then the object, then the write. Any time may pass between
   * them. So the epoch is the present one, or one that was settled once; the object is the present one, or one that may
   * come back and was free once.
   */
  :: atomic { MAY_CLAIM(me) && IS_RECORDED && IS_QUIET_OVER(me) && FREE -> take(object, epoch, record.present * epoch) }
  :: atomic { MAY_CLAIM(me) && IS_RECORDED && IS_QUIET_OVER(me) && copy.free && copy.etag != object.etag ->
       take(copy, epoch, record.present * epoch) }
  :: atomic { MAY_CLAIM(me) && epoch > 0 && FREE -> printf("task %d: has asked for the epoch when it was 0\n", me); take(object, 0, 0) }
  :: atomic { MAY_CLAIM(me) && epoch > 0 && copy.free && copy.etag != object.etag ->
       printf("task %d: has asked for the epoch when it was 0\n", me); take(copy, 0, 0) }
#if LOSSES > 1
  :: atomic { MAY_CLAIM(me) && epoch > 1 && settled[1] && FREE -> printf("task %d: has asked for the epoch when it was 1\n", me); take(object, 1, 1) }
#endif
  /* Rule 11. A read-back shows no more than the reply (rule 5). */
  :: atomic { !HOLDS(me) && newest[me].at == applied && newest[me].left > 0 && IS_SAME_EPOCH(me) -> begin(me) }
  :: atomic { !HOLDS(me) && newest[me].at != nowhere -> end(me) }

  /* holder.ts, #keep(): a renewal, also one after a renewal without a reply; the reply; a read. */
  :: atomic { HOLDS(me) && known[me].etag != NEVER -> printf("task %d: renews\n", me); send(me, held, known[me].etag); start(newest[me]) }
  :: atomic { HOLDS(me) && newest[me].at == applied -> assert(NEVER_REVIVED(me)); assert(NOT_KEPT(me)); adopt_newest(me) }
  :: atomic { HOLDS(me) && IS_MINE(me) && object.etag != known[me].etag && !SHOWN(newest[me]) -> read_back(me) }
  :: atomic { HOLDS(me) && !IS_MINE(me) -> printf("task %d: finds that the lease is lost\n", me); assert(LOST_TO_ANOTHER(me)); end(me) }
  :: atomic { HOLDS(me) && known[me].etag != NEVER -> release(me, known[me].etag) }
  :: atomic { HOLDS(me) && OF_TENURE(me) && object.etag != known[me].etag -> release(me, object.etag) }
  :: atomic { HOLDS(me) -> end(me) } /* A crash; or rules 6 and 7, out of time. */
  od
}

/* ---- Time ---- */

inline count_down(w) {
  if :: w.left > 0 -> w.left-- :: else -> skip fi
}
/* Rule 3: what is over is over. */
inline lapse(t) {
  if
  :: HOLDS(t) && known[t].left == 0 || !HOLDS(t) && newest[t].at != nowhere && newest[t].left == 0 -> end(t)
  :: else -> skip
  fi
}
proctype clock() {
  do
  :: atomic {
       printf("a tick\n");
       if :: age < LIMIT -> age++ :: else -> skip fi;
       if :: record.age < LIMIT -> record.age++ :: else -> skip fi;
       if :: record.age == LIMIT && record.present -> settled[epoch] = true :: else -> skip fi;
       count_down(known[0]); count_down(newest[0]); count_down(known[1]); count_down(newest[1]); count_down(late);
       lapse(0); lapse(1)
#ifdef QUIET_FROM_START
       ; if :: waited[0] < LIMIT && !HOLDS(0) -> waited[0]++ :: else -> skip fi;
       if :: waited[1] < LIMIT && !HOLDS(1) -> waited[1]++ :: else -> skip fi
#endif
     }
  od
}

init {
  atomic {
    object.body = vacant; object.etag = OF_VACANT; age = LIMIT;
    record.present = true; record.age = LIMIT; settled[0] = true;
    drop_copy(); forget_late();
    forget(known[0]); forget(newest[0]); forget(known[1]); forget(newest[1]);
    run task(0); run task(1); run store(); run clock()
  }
}
