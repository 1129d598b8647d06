import type { ClusterStatus } from '../../../core/lease/operate/inspect.js';
import { wholeCluster } from '../../../node/monitor/listed-cluster.js';
import { fitLine, sayLines } from '../../kit/answer.js';
import type { Io, Screen } from '../../kit/io.js';
import { Frame } from '../../kit/show.js';
import { type Color, cut, formatDuration, paintFor } from '../../kit/terminal/text.js';
import { statusTable } from '../status/status-table.js';

/** How many events are kept: no terminal shows more. */
const KEPT = 200;

/**
 * Shows the demo. On a terminal: a title, the live table, the last events, and what comes next, redrawn.
 * Elsewhere: one line an event.
 */
export class DemoView {
  readonly #frame: Frame;
  readonly #begun: number;
  #entries: { readonly time: string; readonly text: string; readonly color: Color | undefined }[] = [];
  #status: ClusterStatus | undefined;
  #next = '';

  /** @param title two lines */
  constructor(
    private readonly title: readonly [string, string],
    private readonly io: Io,
  ) {
    this.#frame = new Frame(io);
    this.#begun = io.clock.monotonic();
    if (io.screen() === undefined) sayLines(io, title);
  }

  say(text: string, color?: Color): void {
    const entry = { time: formatDuration(this.io.clock.monotonic() - this.#begun).padStart(6), text, color };
    this.#entries = [...this.#entries, entry].slice(-KEPT);
    if (this.io.screen() === undefined) sayLines(this.io, [`${entry.time}  ${text}`]);
    else this.#draw();
  }

  /** @param next what is going to happen */
  update(status: ClusterStatus | undefined, next: string): void {
    this.#status = status;
    this.#next = next;
    this.#draw();
  }

  /** Gives the terminal back, with the last lines on it. */
  end(): void {
    this.#next = '';
    this.#draw();
    this.#frame.end();
  }

  #draw() {
    const screen = this.io.screen();
    if (screen !== undefined) this.#frame.draw(this.#lines(screen));
  }

  #lines(screen: Screen): string[] {
    const paint = paintFor(screen);
    const [title, subtitle] = this.title;
    const head = [fitLine(title, screen, 'bold'), fitLine(subtitle, screen, 'dim'), ''];
    const table =
      this.#status === undefined ? [] : [...statusTable(wholeCluster(this.#status), { screen }), ''];
    const foot = ['', fitLine(this.#next, screen, 'cyan')];
    const room = Math.max(1, screen.rows - 1 - head.length - table.length - foot.length);
    const entries = this.#entries
      .slice(-room)
      .map(
        ({ time, text, color }) => `${paint(time, 'dim')}  ${paint(cut(text, screen.columns - 8), color)}`,
      );
    return [...head, ...table, ...entries, ...foot].slice(0, screen.rows - 1);
  }
}
