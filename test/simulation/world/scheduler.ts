import { EventQueue } from './event-queue.js';

/** Who an event happens to: a process can be dead, or stopped for a while. */
export interface Actor {
  /** False from its end on: whatever was meant for it happens no more. */
  readonly alive: boolean;
  /** While true, its events are kept for later. */
  readonly stopped: boolean;
  /** Keeps an event until the actor goes on. */
  defer(act: () => void, isTimer: boolean): void;
}

/** Its reactions come as microtasks, at less cost than those of `queueMicrotask`. */
const SETTLED = Promise.resolve();

/** An event that is still to come. */
export interface Planned {
  cancelled: boolean;
}

interface Event extends Planned {
  readonly time: number;
  order: number;
  readonly actor: Actor | undefined;
  readonly act: () => void;
  readonly isTimer: boolean;
}

/**
 * True time, in milliseconds from 0, and what happens in it: one event after the other, each with all the
 * promise reactions that follow from it, before the next one begins. Nothing waits for real time.
 */
export class Scheduler {
  /** True time. */
  now = 0;
  /** Events carried out so far. */
  steps = 0;
  readonly #queue = new EventQueue<Event>();

  /**
   * Plans an event; one that lies in the past comes next. An actor that is dead by then, or stopped, does not
   * get it, or gets it later.
   *
   * @param actor whose promises the event may settle; undefined for one that settles none, as in the network
   * or at the store
   * @param isTimer whether it is a timer of the actor's that has run out
   */
  at(time: number, actor: Actor | undefined, act: () => void, isTimer = false): Planned {
    const event: Event = {
      time: time > this.now ? time : this.now,
      order: 0,
      actor,
      act,
      isTimer,
      cancelled: false,
    };
    this.#queue.push(event);
    return event;
  }

  /**
   * Lets time pass until `end`, or until `afterStep` says that it is enough.
   *
   * @param afterStep called when an event and its consequences are over; false ends the run
   */
  run(end: number, afterStep: (actor: Actor | undefined) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let actor: Actor | undefined;
      let ran = false;
      const step = () => {
        try {
          do {
            if (ran && !afterStep(actor)) return resolve();
            const event = this.#next(end);
            if (event === undefined) {
              this.now = Math.max(this.now, end);
              return resolve();
            }
            ran = true;
            actor = event.actor;
            this.now = event.time;
            this.steps += 1;
            event.act();
            // What happens to no process settles no promise, so there is nothing to wait for.
          } while (actor === undefined);
        } catch (error) {
          return reject(error);
        }
        void SETTLED.then(settle);
      };
      // A tick that is asked for by a microtask comes when no microtask is left: that is when an event's
      // consequences are over.
      const settle = () => process.nextTick(step);
      settle();
    });
  }

  #next(end: number): Event | undefined {
    for (;;) {
      const event = this.#queue.peek();
      if (event === undefined || event.time > end) return undefined;
      this.#queue.pop();
      if (event.cancelled || event.actor?.alive === false) continue;
      if (event.actor?.stopped) {
        const { actor } = event;
        actor.defer(() => {
          if (!event.cancelled) this.at(this.now, actor, event.act, event.isTimer);
        }, event.isTimer);
        continue;
      }
      return event;
    }
  }
}
