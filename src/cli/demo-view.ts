import type { Clock } from '../clock.js';
import type { ClusterStatus } from '../lease/inspect.js';
import { wholeCluster } from '../monitor/paged-cluster.js';
import { type Color, paintFor } from './color.js';
import { Frame } from './frame.js';
import type { Io, Screen } from './io.js';
import { statusTable } from './status-table.js';
import { cut } from './table.js';
import { formatDuration } from './text.js';

/** One thing that happened. */
interface Entry {
  readonly time: string;
  readonly text: string;
  readonly color: Color | undefined;
}

/** How many entries are kept: no terminal shows more. */
const KEPT = 200;

/**
 * What the demo shows. On a terminal: a title, the live table, what happened last, and what comes next, drawn again and again.
 * Elsewhere: one line for each thing that happens.
 */
export class DemoView {
  readonly #frame: Frame;
  readonly #begun: number;
  #entries: Entry[] = [];
  #status: ClusterStatus | undefined;
  #next = '';

  constructor(
    /** One line, and what else there is to know, in another one. */
    private readonly title: readonly [string, string],
    private readonly clock: Clock,
    private readonly io: Pick<Io, 'stdout' | 'screen'>,
  ) {
    this.#frame = new Frame(io);
    this.#begun = clock.monotonic();
    if (io.screen() === undefined) io.stdout(`${title.join('\n')}\n`);
  }

  /** Something happened. */
  tell(text: string, color?: Color): void {
    const entry = { time: formatDuration(this.clock.monotonic() - this.#begun).padStart(6), text, color };
    this.#entries = [...this.#entries, entry].slice(-KEPT);
    if (this.io.screen() === undefined) this.io.stdout(`${entry.time}  ${text}\n`);
    else this.#draw();
  }

  /** The leases as they are now, and what is going to happen. */
  update(status: ClusterStatus | undefined, next: string): void {
    this.#status = status;
    this.#next = next;
    this.#draw();
  }

  /** Gives the terminal back, with the last picture on it. */
  end(): void {
    this.#next = '';
    this.#draw();
    this.#frame.end();
  }

  #draw(): void {
    const screen = this.io.screen();
    if (screen !== undefined) this.#frame.draw(this.#lines(screen));
  }

  #lines(screen: Screen): string[] {
    const paint = paintFor(screen.color);
    const [title, subtitle] = this.title.map((line) => cut(line, screen.columns)) as [string, string];
    const head = [paint(title, 'bold'), paint(subtitle, 'dim'), ''];
    const table = this.#status === undefined ? [] : [...statusTable(wholeCluster(this.#status), { screen }), ''];
    const foot = ['', paint(cut(this.#next, screen.columns), 'cyan')];
    const room = Math.max(1, screen.rows - 1 - head.length - table.length - foot.length);
    const entries = this.#entries
      .slice(-room)
      .map(({ time, text, color }) => `${paint(time, 'dim')}  ${paint(cut(text, screen.columns - 8), color)}`);
    return [...head, ...table, ...entries, ...foot].slice(0, screen.rows - 1);
  }
}
