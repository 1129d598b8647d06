/*
 * Ticks, as a model for SPIN: rules O2 to O6 of docs/design/protocol.md. The object tick.json has the last tick that was
 * claimed; it is changed by compare-and-swap under a lock, which keeps rule 1. Store time is a number of ticks; each host
 * takes it for one more or one less than it is, or right.
 *
 * Without -DRETRY a tick is started at most once, ever. With it, a claimed tick without a recorded success may be claimed
 * again within the tick: no two run at once, and none starts after a success that was released. -DRESEND: an undecided
 * claim is sent again, with the same nonce and etag, until the object decides, as the code does.
 */
#ifndef HOSTS
#define HOSTS 2
#endif
#ifndef TICKS
#define TICKS 4
#endif

#ifdef NOT_EQUAL /* O2: a host claims whatever tick is not the last one claimed */
#define NEWER(t) (t != last_seen[me])
#else
#define NEWER(t) (t > last_seen[me])
#endif
#ifdef RETRY
#define AGAIN(t) (t == last_seen[me] && !done_seen[me])
#else
#define AGAIN(t) false
#endif
#ifdef NO_CHECK /* O3: the lock is not asked again before the start */
#define MAY_START true
#else
#define MAY_START holds[me]
#endif
#ifdef NO_LOCK /* O5: the tick is claimed without the lock */
#define LOCK_FREE true
#else
#define LOCK_FREE nobody_holds
#endif

mtype = { nowhere, under_way, late, applied, refused };
mtype:what = { claim, outcome };

/* The object. */
byte last;
bool done;
/* The lock, by rule 1: nobody gets it while another believes. */
bool holds[HOSTS];
#if HOSTS == 2
#define nobody_holds (!holds[0] && !holds[1])
#define OTHERS_RUN(me) (runs[1 - me])
#else
#define nobody_holds (!holds[0] && !holds[1] && !holds[2])
#define OTHERS_RUN(me) ((me != 0 && runs[0]) || (me != 1 && runs[1]) || (me != 2 && runs[2]))
#endif
bool runs[HOSTS];
byte now = 1;

/* Of each host: what it read and whether that is current; its write; an earlier one that is late; whether its write is what stands there. */
byte last_seen[HOSTS]; bool done_seen[HOSTS]; bool fresh[HOSTS];
mtype at[HOSTS]; mtype:what kind[HOSTS]; byte tick[HOSTS]; bool match[HOSTS]; bool stands[HOSTS];
bool late_at[HOSTS]; mtype:what late_kind[HOSTS]; byte late_tick[HOSTS]; bool late_match[HOSTS];
#ifdef RESEND
bool mine[HOSTS]; /* The late claim has the nonce of the attempt that goes on. */
#define MINE(h, yes) mine[h] = yes
#define SHOW(h) if :: mine[h] && late_kind[h] == claim -> stands[h] = true; fresh[h] = true :: else -> skip fi
#else
#define MINE(h, yes) skip
#define SHOW(h) skip
#endif

/* How often a tick was started (2: too often), and whether it was run to its end by a host that then released the lock. */
bool started[TICKS + 2];
bool finished[TICKS + 2];

inline changes(h) {
  for (i : 0 .. HOSTS - 1) {
    fresh[i] = false; stands[i] = false; late_match[i] = false; match[i] = false;
    if :: late_at[i] && !late_match[i] -> late_at[i] = false; late_kind[i] = claim; late_tick[i] = 0 :: else -> skip fi
  }
  i = 0
}
#ifdef BLIND /* O2: a claim without If-Match */
#define FITS(m, k) (m || k == claim)
#else
#define FITS(m, k) m
#endif

proctype network(byte h) {
  byte i;
  do
  :: atomic { at[h] == under_way && FITS(match[h], kind[h]) ->
       if :: kind[h] == claim -> last = tick[h]; done = false :: else -> done = true fi;
       changes(h); at[h] = applied; stands[h] = true; fresh[h] = true }
  :: atomic { at[h] == under_way -> at[h] = refused }
  :: atomic { late_at[h] && late_match[h] ->
       if :: late_kind[h] == claim -> last = late_tick[h]; done = false :: else -> done = true fi;
       changes(h); SHOW(h); late_at[h] = false; late_kind[h] = claim; late_tick[h] = 0; MINE(h, false) }
  :: atomic { late_at[h] -> late_at[h] = false; late_match[h] = false; late_kind[h] = claim; late_tick[h] = 0 }
  od
}

inline forget(h) { at[h] = nowhere; kind[h] = claim; match[h] = false; stands[h] = false }
inline give_up(h) {
  if
  :: at[h] == under_way && !late_at[h] && match[h] -> late_at[h] = true; late_kind[h] = kind[h]; late_tick[h] = tick[h]; late_match[h] = true; at[h] = nowhere; match[h] = false; MINE(h, true)
  :: at[h] == under_way || at[h] == refused -> at[h] = nowhere; match[h] = false
  :: at[h] == applied -> at[h] = nowhere
  fi
}
#ifdef WORK_GOES_ON /* O5: the work does not end with the lock (rule 7) */
inline lose(h) { holds[h] = false }
#else
inline lose(h) { holds[h] = false; runs[h] = false }
#endif
inline quit(h) { lose(h); runs[h] = false; give_up_any(h); forget(h); MINE(h, false); tick[h] = 0; last_seen[h] = 0; done_seen[h] = false; fresh[h] = false }
inline give_up_any(h) { if :: at[h] != nowhere -> give_up(h) :: else -> skip fi }

proctype host(byte me) {
idle:
  atomic { LOCK_FREE -> holds[me] = true; tick[me] = 0 };
look:
  atomic {
    last_seen[me] = last; done_seen[me] = done; fresh[me] = true;
    if :: tick[me] = now :: tick[me] = now + 1 :: now > 1 -> tick[me] = now - 1 fi;
    if
    :: NEWER(tick[me]) || AGAIN(tick[me]) -> skip
    :: else -> quit(me); goto idle
    fi
  };
#ifdef START_FIRST /* O3: the work is started, then the tick is claimed */
  if
  :: atomic { MAY_START -> assert(!started[tick[me]]); started[tick[me]] = true; runs[me] = true }
  :: atomic { quit(me); goto idle }
  fi;
#endif
  if
  :: atomic { kind[me] = claim; match[me] = fresh[me]; at[me] = under_way }
  :: atomic { quit(me); goto idle }
  fi;
sent:
  if
  :: atomic { at[me] == applied -> at[me] = nowhere }
#ifdef RESEND
  :: atomic { at[me] == refused -> at[me] = nowhere; match[me] = false; goto doubt }
#else
  :: atomic { at[me] == refused -> forget(me); quit(me); goto idle }
#endif
  :: atomic { give_up(me);
#ifdef UNKNOWN_APPLIED /* O4: a claim of unknown outcome is taken as made */
     }
#else
     goto doubt }
#endif
  :: atomic { quit(me); goto idle }
  fi;
  goto start;
doubt:
  if
  :: atomic { stands[me] -> skip }
#ifdef RESEND
  :: atomic { !stands[me] && fresh[me] -> kind[me] = claim; match[me] = true; at[me] = under_way; goto sent }
#endif
  :: atomic { !stands[me] -> quit(me); goto idle }
  :: atomic { quit(me); goto idle }
  fi;
start:
#ifndef START_FIRST
  if
  :: atomic { MAY_START ->
#ifdef RETRY
       assert(!finished[tick[me]]); assert(!OTHERS_RUN(me));
#else
       assert(!started[tick[me]]);
#endif
       started[tick[me]] = true; runs[me] = true }
  :: atomic { quit(me); goto idle }
  fi;
#endif
  if
  :: atomic { runs[me] -> runs[me] = false }   /* It has ended well. */
  :: atomic { quit(me); goto idle }            /* It has failed, or the host has crashed, or lost the lock. */
  fi;
record:
  if
  :: atomic { holds[me] -> give_up_any(me); kind[me] = outcome; match[me] = fresh[me]; at[me] = under_way }
  :: atomic { quit(me); goto idle }
  fi;
  if
  :: atomic { at[me] == applied -> finished[tick[me]] = (holds[me] -> true : finished[tick[me]]); quit(me); goto idle }
  :: atomic { at[me] == refused -> forget(me) }
  :: atomic { give_up(me);
#ifdef RELEASE_UNRECORDED /* O6: the lock is released although it is not known that the success is recorded */
     finished[tick[me]] = (holds[me] -> true : finished[tick[me]]); quit(me); goto idle
#endif
     }
  :: atomic { quit(me); goto idle }
  fi;
  if
  :: atomic { stands[me] && kind[me] == outcome && done && holds[me] -> finished[tick[me]] = true; quit(me); goto idle }
  :: atomic { holds[me] && !done && last == tick[me] -> fresh[me] = true; goto record }
  :: atomic { quit(me); goto idle }
  fi
}

/* The deadline of a lock passes, whatever its holder does. */
proctype clock() {
  do
  :: atomic { now < TICKS -> now++ }
  :: atomic { holds[0] -> lose(0) }
  :: atomic { holds[1] -> lose(1) }
#if HOSTS == 3
  :: atomic { holds[2] -> lose(2) }
#endif
  od
}

init {
  atomic {
    byte i;
    for (i : 0 .. HOSTS - 1) { at[i] = nowhere; kind[i] = claim; late_kind[i] = claim }
    run host(0); run network(0); run host(1); run network(1); run clock();
#if HOSTS == 3
    run host(2); run network(2)
#endif
  }
}
