import type { PageClock } from '../page-clock.js';

/** From one drawing to the next at least, in milliseconds. */
const PAUSE_MS = 100;

/**
 * Calls `draw` up to ten times a second, and not at all while nobody can see the page: browsers draw no frames of hidden ones. Whatever came in
 * between is drawn at once with the next frame. What `draw` throws goes to the browser's console, and it goes on.
 */
export async function beat(clock: PageClock, draw: () => void): Promise<never> {
  for (;;) {
    await new Promise((resolve) => requestAnimationFrame(resolve));
    try {
      draw();
    } catch (error) {
      reportError(error);
    }
    await clock.sleep(PAUSE_MS);
  }
}
