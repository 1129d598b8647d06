import type { PageClock } from '../page-clock.js';

/** From one drawing to the next at least, in milliseconds. */
const DRAW_MS = 100;

/** Draws up to ten times a second, and not at all while the page is hidden: browsers draw no frames of hidden ones. */
export async function keepDrawing(clock: PageClock, draw: () => void): Promise<never> {
  for (;;) {
    await new Promise((resolve) => requestAnimationFrame(resolve));
    try {
      draw();
    } catch (error) {
      reportError(error);
    }
    await clock.sleep(DRAW_MS);
  }
}
