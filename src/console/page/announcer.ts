import type { PageClock } from '../page-clock.js';
import { find } from './dom.js';

/** What is said one by one; more than that at once is counted. */
const ONE_BY_ONE = 3;
/** From one thing that is said to the next, in milliseconds. */
const PAUSE_MS = 1_500;

/** Tells screen readers what happens, with pauses. */
export class Announcer {
  readonly #region = find('announcer');
  #waiting: string[] = [];
  #isTalking = false;

  constructor(private readonly clock: PageClock) {}

  say(text: string): void {
    this.#waiting.push(text);
    if (!this.#isTalking) void this.#talk();
  }

  async #talk(): Promise<void> {
    this.#isTalking = true;
    while (this.#waiting.length > 0) {
      const texts = this.#waiting.splice(0);
      const count = texts.length - ONE_BY_ONE;
      const rest = count > 0 ? [`and ${count} more events`] : [];
      this.#region.textContent = [...texts.slice(0, ONE_BY_ONE), ...rest].join('. ');
      await this.clock.sleep(PAUSE_MS);
    }
    this.#isTalking = false;
  }
}
