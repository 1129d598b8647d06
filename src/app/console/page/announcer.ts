import { browserClock } from '../page-clock.js';
import { find } from './find.js';

/** Maximum number of texts at once; the others are counted. */
const MAX_TEXTS = 3;
/** From one announcement to the next, in milliseconds. */
const PAUSE_MS = 1_500;

/** Announces to screen readers what happens, with pauses. */
export class Announcer {
  readonly #region = find('announcer');
  #waiting: string[] = [];
  #isTalking = false;

  say(text: string): void {
    this.#waiting.push(text);
    if (!this.#isTalking) void this.#talk();
  }

  async #talk(): Promise<void> {
    this.#isTalking = true;
    while (this.#waiting.length > 0) {
      const texts = this.#waiting.splice(0);
      const count = texts.length - MAX_TEXTS;
      const rest = count > 0 ? [`and ${count} more events`] : [];
      this.#region.textContent = [...texts.slice(0, MAX_TEXTS), ...rest].join('. ');
      await browserClock.sleep(PAUSE_MS);
    }
    this.#isTalking = false;
  }
}
