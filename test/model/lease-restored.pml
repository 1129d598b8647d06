/*
 * A store that goes back in time, as a model for SPIN: rules 10 to 13 of docs/design/protocol.md, with what they need of
 * rules 1 to 8. lease.pml has those in full.
 *
 * There are two tasks, one node id, the record of the epoch in cluster.json, and the store. At any moment the store goes
 * back to an earlier state of both objects. A pause, a slow process, a late reply: each is an order in which others go
 * first, so none of them needs a line of its own. An atomic { } is one step. A -D of one of the names at the planted bugs
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
/* Ticks of the store's clock. */
#ifndef DURATION
#define DURATION 2
#endif
#define GRACE 1
#define LIMIT (DURATION + GRACE)
/* How long before the deadline a holder gives up (rule 6). */
#ifndef MARGIN
#define MARGIN 0
#endif

/*
 * Rule 12. LOST is more than the versions that the store loses. Store time brings as many in a duration and a grace. At
 * least that is between takes in two epochs (rule 10), so the number of the epoch is a store time that is never too great.
 */
#define LOST CLAIMS
#define BY_TIME(number) ((number) * LOST)

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

#ifdef OLD_RECORD /* rule 11: the record of an earlier epoch counts */
#define IS_RECORDED true
#else
#define IS_RECORDED (record.epoch == epoch)
#endif

#ifdef NO_SECOND_LOOK /* rule 11: the store is not asked for its epoch after the acquiring write */
#define IS_SAME_EPOCH(t) true
#else
#define IS_SAME_EPOCH(t) (told[t] == epoch)
#endif

#ifdef VACANT_STAYS /* rule 12: an id that no task has held begins at version 1 */
#define LEAPS(w) (w.body != vacant && w.mark != newest[me].mark)
#else
#define LEAPS(w) (w.mark != newest[me].mark)
#endif

#ifdef NO_LEAP /* rule 12: the next version is one more */
#define LEAP(version, number) ((version) + 1)
#elif defined(ONE_FLOOR) /* rule 12: versions leap by number alone */
#define LEAP(version, number) ((version) + LOST + 1)
#elif defined(FAR_LEAP) /* rule 12: the leap by number is more than store time brings in a duration and a grace */
#define LEAP(version, number) MAX((version) + 2 * LOST, BY_TIME(number)) + 1
#else
#define LEAP(version, number) MAX((version) + LOST, BY_TIME(number)) + 1
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
#define IS_MINE(t) (OF_TENURE(t) && (object.etag == known[t].etag || SHOWN(newest[t]) || SHOWN(earlier[t])))
#else
#define IS_MINE(t) OF_TENURE(t)
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

/* The epoch that cluster.json names is its etag, too. The age counts from the record. */
typedef Record { byte epoch; byte age };
Record record;

byte epoch;     /* That the store tells. */
bool settled[LOSSES + 1]; /* Whether an epoch was ever recorded for long enough. */

/* An earlier state that can come back, also twice. It is kept when a write replaces it, once in an epoch. */
Object copy;
byte copy_record;
bool copies;

/* sent: it may be applied yet. Its sender waits for the answer, or has given it up: then it is late. */
mtype:place = { nowhere, sent, applied };

typedef Write {
  mtype:place at;
  mtype:body body;
  byte match;   /* If-Match */
  byte etag;    /* What the object has once it is applied. */
  byte claim;
  byte version;
  byte mark;
  byte left;    /* Rule 3: ticks until its sender's clock, read before it was sent, has counted the duration. */
  bool older    /* A later write of the tenure is known to have been applied. */
};

/* Of each task: whether its work goes on; its tenure, with the etag and the deadline that it knows; its latest write; an earlier one. */
bool works[2];
Write known[2];
Write newest[2];
Write earlier[2];
bool waits[2];  /* For the answer to its latest write. */
byte told[2];   /* The epoch before the object was read. */
#ifdef QUIET_FROM_START
byte waited[2];
#endif

byte claims;    /* Number of acquiring writes so far. */
byte top;       /* The highest version that a tenure had. */

#define IN_TIME(w) (w.left > MARGIN)
#define WORKING(t) (works[t] && known[t].left > 0)
#define FREE (object.body != held || age >= LIMIT) /* rule 4 */
#define SHOWN(w) (w.at != nowhere && object.etag == w.etag)
#define OF_TENURE(t) (object.body == held && object.claim == known[t].claim)
#define IS_LATE(t) (newest[t].at == sent && !waits[t] || earlier[t].at == sent)
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
  w.at = nowhere; w.body = vacant; w.match = NEVER; w.etag = NEVER; w.claim = 0; w.version = 0; w.mark = 0; w.left = 0; w.older = false
}

/* What cannot be applied any more is forgotten, and what cannot be shown, unless its sender waits. */
inline tidy(w, waiting) {
  if :: w.match != NEVER && !ALIVE(w.match) -> w.match = NEVER :: else -> skip fi;
  if
  :: w.at == sent && w.match == NEVER || w.at == applied && !waiting && (!ALIVE(w.etag) || w.left == 0) -> forget(w)
  :: else -> skip
  fi
}
inline tidy_all() {
  tidy(newest[0], waits[0]); tidy(earlier[0], false); if :: !ALIVE(known[0].etag) -> known[0].etag = NEVER :: else -> skip fi;
  tidy(newest[1], waits[1]); tidy(earlier[1], false); if :: !ALIVE(known[1].etag) -> known[1].etag = NEVER :: else -> skip fi
}

inline drop_copy() {
  copy.body = vacant; copy.etag = NEVER; copy.claim = 0; copy.version = 0; copy.mark = 0; copy.free = false; copy_record = 0
}
inline maybe_keep() {
  if
  :: !copies && epoch < LOSSES ->
     printf("store: the present state can come back\n");
     copies = true;
     copy.body = object.body; copy.etag = object.etag; copy.claim = object.claim; copy.version = object.version; copy.mark = object.mark;
     copy.free = FREE; copy_record = record.epoch
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
  :: atomic { earlier[0].at == sent && earlier[0].match == object.etag -> apply(earlier[0], 0) }
  :: atomic { earlier[1].at == sent && earlier[1].match == object.etag -> apply(earlier[1], 1) }
  /* What a contender records, perhaps late: in an epoch after the one that it records. */
  :: atomic { record.epoch < epoch ->
       maybe_keep();
       do :: record.epoch++; if :: record.epoch == epoch -> break :: record.epoch < epoch -> break :: record.epoch < epoch -> skip fi od;
       printf("store: cluster.json has epoch %d\n", record.epoch);
       record.age = 0; tidy_all() }
  :: atomic { epoch < LOSSES ->
       if
       :: copy.etag != NEVER ->
          object.body = copy.body; object.etag = copy.etag; object.claim = copy.claim; object.version = copy.version; object.mark = copy.mark;
          record.epoch = copy_record
       :: skip
       fi;
       age = LIMIT; record.age = LIMIT; copies = false;
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
#define IS_KNOWN(number, t) (known[t].etag == number || IS_ETAG_OF(newest[t], number) || IS_ETAG_OF(earlier[t], number))
inline new_etag(w) {
  number = OF_VACANT + 1;
  do
  :: ALIVE(number) || IS_KNOWN(number, 0) || IS_KNOWN(number, 1) -> number++
  :: else -> break
  od;
  assert(number < ETAGS);
  w.etag = number; number = 0
}

/* A late write stays one. */
inline make_room(t) {
  if
  :: newest[t].at == sent ->
     earlier[t].at = newest[t].at; earlier[t].body = newest[t].body; earlier[t].match = newest[t].match; earlier[t].etag = newest[t].etag;
     earlier[t].claim = newest[t].claim; earlier[t].version = newest[t].version; earlier[t].mark = newest[t].mark;
     earlier[t].left = newest[t].left; earlier[t].older = newest[t].older
  :: else -> skip
  fi;
  forget(newest[t])
}

inline send(t, the_body, the_match) {
  make_room(t);
  newest[t].body = the_body; newest[t].match = the_match;
  newest[t].claim = known[t].claim; newest[t].version = known[t].version; newest[t].mark = known[t].mark;
  new_etag(newest[t]);
  newest[t].at = sent; waits[t] = true;
  if :: the_body == held -> start(newest[t]) :: else -> skip fi
}

/* A refusal, a time-out, a lost connection, 500 or 503. The write has been applied, or it will be, or never. One at a time is late. */
inline give_up(t) {
  waits[t] = false;
  if
  :: newest[t].at == sent && !IS_LATE(1 - t) && earlier[t].at != sent -> skip
  :: newest[t].at == sent -> forget(newest[t])
  :: newest[t].at != sent -> tidy(newest[t], false)
  fi
}

/* The last write known to be applied is this one: its etag, and the deadline by when it was sent (rule 3). */
inline adopt(t, w) {
  known[t].left = w.left;
  known[t].etag = (ALIVE(w.etag) -> w.etag : NEVER);
  forget(w)
}
inline adopt_newest(t) {
  adopt(t, newest[t]); waits[t] = false;
  if :: earlier[t].at == sent -> earlier[t].older = true; earlier[t].left = 0 :: else -> forget(earlier[t]) fi
}

inline begin(t) {
  assert(VERSION_RISES(newest[t]));
  top = newest[t].version;
  works[t] = true; told[t] = 0;
  known[t].claim = newest[t].claim; known[t].version = newest[t].version; known[t].mark = newest[t].mark;
  printf("task %d: holds the id, version %d\n", t, newest[t].version);
  adopt_newest(t)
}

/* Rules 5 and 13: keeper.ts, #readBack() and #adopt(). */
inline read_back(t) {
  assert(NEVER_REVIVED(t));
  if
  :: SHOWN(newest[t]) -> printf("task %d: sees its latest write\n", t); adopt_newest(t)
  :: !SHOWN(newest[t]) && SHOWN(earlier[t]) && !earlier[t].older -> printf("task %d: sees its write\n", t); adopt(t, earlier[t])
  :: !SHOWN(newest[t]) && (!SHOWN(earlier[t]) || earlier[t].older) ->
     if
     :: object.etag == known[t].etag -> skip
     :: else -> printf("task %d: sees an earlier write of its own\n", t); known[t].etag = object.etag; COUNT_READ(t)
     fi
  fi
}

/* Rule 7: the work ends with the tenure. What is late stays late. */
inline end(t) {
  printf("task %d: has ended\n", t);
  if :: waits[t] -> give_up(t) :: else -> skip fi;
  works[t] = false; told[t] = 0; forget(known[t]);
  if :: newest[t].at == applied -> forget(newest[t]) :: else -> skip fi;
  if :: earlier[t].at == applied -> forget(earlier[t]) :: else -> skip fi;
  make_room(t);
  earlier[t].left = 0; earlier[t].older = false;
#ifdef QUIET_FROM_START
  waited[t] = 0
#endif
}

/* Rule 8: keeper.ts, giveBack(). The work has ended. The etag is the known one, or the one that the object has. */
inline leave(t, the_match) {
  printf("task %d: releases\n", t);
  works[t] = false; known[t].left = 0;
  send(t, tombstone, the_match)
}

inline take(w, the_epoch, the_mark) {
  claims++;
  told[me] = the_epoch;
  newest[me].mark = the_mark; newest[me].match = w.etag;
  if
  :: LEAPS(w) -> newest[me].version = LEAP(w.version, the_epoch)
  :: else -> newest[me].version = w.version + 1
  fi;
  printf("task %d: claims the id, version %d\n", me, newest[me].version);
  newest[me].body = held; newest[me].claim = claims; new_etag(newest[me]); newest[me].at = sent; waits[me] = true;
  start(newest[me])
}

proctype task(byte me) {
  byte number;
contend:
  /*
   * acquirer.ts and claim.ts. The settings and the epoch, then the object, then the write: any time may pass between them.
   * So the epoch is the present one, or an earlier one that was settled once; the object is the present one, or one that
   * may come back and was free once.
   */
  if
  :: atomic { claims < CLAIMS && (claims > 0 || me == 0) && IS_RECORDED && IS_QUIET_OVER(me) && FREE -> take(object, epoch, record.epoch) }
  :: atomic { claims < CLAIMS && (claims > 0 || me == 0) && IS_RECORDED && IS_QUIET_OVER(me) && copy.free && copy.etag != object.etag ->
       printf("task %d: saw it when it was free\n", me); take(copy, epoch, record.epoch) }
  :: atomic { claims < CLAIMS && claims > 0 && epoch > 0 && FREE ->
       number = 0;
       do :: number + 1 < epoch -> number++ :: break od;
       if :: settled[number] -> told[me] = number :: else -> number = 0; goto contend fi;
       number = 0; printf("task %d: asked for the epoch when it was %d\n", me, told[me]);
       take(object, told[me], told[me]) }
  :: atomic { claims < CLAIMS && claims > 0 && epoch > 0 && copy.free && copy.etag != object.etag ->
       number = 0;
       do :: number + 1 < epoch -> number++ :: break od;
       if :: settled[number] -> told[me] = number :: else -> number = 0; goto contend fi;
       number = 0; printf("task %d: asked for the epoch when it was %d, and saw the object when it was free\n", me, told[me]);
       take(copy, told[me], told[me]) }
  fi;

  if
  /* Rule 11. A read-back shows no more than the answer (rule 5), and a later answer only shortens the tenure. */
  :: atomic { newest[me].at == applied && IN_TIME(newest[me]) && IS_SAME_EPOCH(me) -> begin(me) }
  :: atomic { end(me); goto contend }
  fi;

hold: /* holder.ts, #keep() */
  if
  :: atomic { IN_TIME(known[me]) -> printf("task %d: renews\n", me); send(me, held, known[me].etag) }
  :: atomic { known[me].left > 0 && known[me].etag != NEVER -> leave(me, known[me].etag); goto released }
  :: atomic { known[me].left > 0 && OF_TENURE(me) && object.etag != known[me].etag -> leave(me, object.etag); goto released }
  :: atomic { end(me); goto contend } /* A crash; or rules 6 and 7, out of time. */
  fi;
  if
  :: atomic { newest[me].at == applied && known[me].left > 0 -> adopt_newest(me); goto hold }
  :: atomic { give_up(me) }
  :: atomic { end(me); goto contend }
  fi;

doubt: /* Rules 5, 6 and 13: what became of the renewal is not known. */
  if
  :: atomic { IS_MINE(me) && known[me].left > 0 -> read_back(me); goto hold }
  :: atomic { !IS_MINE(me) -> printf("task %d: finds that the lease is lost\n", me); assert(LOST_TO_ANOTHER(me)); end(me); goto contend }
  :: atomic { end(me); goto contend }
  :: atomic { known[me].left > 0 && known[me].etag != NEVER -> leave(me, known[me].etag); goto released }
  :: atomic { known[me].left > 0 && OF_TENURE(me) && object.etag != known[me].etag -> leave(me, object.etag); goto released }
  fi;

released:
  atomic { end(me); goto contend }
}

/* ---- Time ---- */

inline count_down(w) {
  if :: w.left > 0 -> w.left-- :: else -> skip fi
}
/* Rule 3: the tenure is over, and nothing of it is asked for any more. */
inline lapse(t) {
  if
  :: known[t].claim != 0 && known[t].left == 0 -> works[t] = false; newest[t].left = 0; earlier[t].left = 0; earlier[t].older = false
  :: else -> skip
  fi
}
proctype clock() {
  do
  :: atomic {
       printf("a tick\n");
       if :: age < LIMIT -> age++ :: else -> skip fi;
       if :: record.age < LIMIT -> record.age++ :: else -> skip fi;
       if :: record.age == LIMIT && record.epoch == epoch -> settled[epoch] = true :: else -> skip fi;
       count_down(known[0]); count_down(newest[0]); count_down(earlier[0]);
       count_down(known[1]); count_down(newest[1]); count_down(earlier[1]);
       lapse(0); lapse(1);
#ifdef QUIET_FROM_START
       if :: waited[0] < LIMIT && known[0].claim == 0 -> waited[0]++ :: else -> skip fi;
       if :: waited[1] < LIMIT && known[1].claim == 0 -> waited[1]++ :: else -> skip fi
#endif
     }
  od
}

init {
  atomic {
    object.body = vacant; object.etag = OF_VACANT; age = LIMIT; record.age = LIMIT; settled[0] = true;
    drop_copy();
    forget(known[0]); forget(newest[0]); forget(earlier[0]);
    forget(known[1]); forget(newest[1]); forget(earlier[1]);
    run task(0); run task(1); run store(); run clock()
  }
}
