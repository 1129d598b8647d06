import type { Actor, Scheduler } from '../../world/scheduler.js';

export interface LineOptions<Message> {
  readonly scheduler: Scheduler;
  /** How long the next message takes, in milliseconds. */
  readonly latencyMs: () => number;
  /** Nothing passes before this true time. */
  readonly heldUntil: () => number;
  readonly deliver: (message: Message) => void;
  /** Who receives; undefined for a server. */
  readonly actor?: Actor | undefined;
}

/** One direction of a TCP connection: messages arrive in the order of sending, late, or not at all. */
export class Line<Message> {
  #lastAt = 0;
  /** Under way, the first one first. */
  readonly #messages: Message[] = [];
  /** Changes when what is under way is lost. */
  #epoch = 0;

  constructor(private readonly options: LineOptions<Message>) {}

  /** @param extraMs how much longer it takes than usual, and with it all that is sent behind it */
  send(message: Message, extraMs = 0): void {
    const { scheduler, latencyMs, heldUntil, deliver, actor } = this.options;
    const epoch = this.#epoch;
    this.#messages.push(message);
    this.#lastAt = Math.max(this.#lastAt, scheduler.now + latencyMs() + extraMs);
    const arrive = () => {
      if (epoch !== this.#epoch) return;
      const held = heldUntil();
      if (held > scheduler.now) return scheduler.at(held, actor, arrive);
      // What was held back arrives at one time, and the scheduler gives no order then.
      const [first] = this.#messages.splice(0, 1);
      if (first !== undefined) deliver(first);
    };
    scheduler.at(this.#lastAt, actor, arrive);
  }

  /** Loses what is under way. */
  drop(): void {
    this.#epoch += 1;
    this.#messages.length = 0;
    this.#lastAt = 0;
  }
}
