import type { ClusterStatus } from '../../../core/lease/operate/inspect.js';
import { wholeCluster } from '../../../node/monitor/listed-cluster.js';
import { fitLine, sayLines } from '../../kit/answer.js';
import type { Io, Screen } from '../../kit/io.js';
import { Frame } from '../../kit/show.js';
import { type Color, cut, formatDuration, paintFor } from '../../kit/terminal/text.js';
import { type FurtherColumn, statusTable } from '../status/status-table.js';

/** How many events are kept: no terminal shows more. */
const KEPT = 200;

/** What can be done to a task. */
export const ACTS = ['kill', 'freeze', 'stop'] as const;
export type Act = (typeof ACTS)[number];

/** The digits of a row: 1 to 3 of the first node id, 4 to 6 of the next one. */
const KEYS_COLUMN: FurtherColumn = [
  'KEYS',
  ({ id, state }) => [
    ACTS.map((act, index) => `${id * ACTS.length + index + 1} ${act}`).join('  '),
    state === 'held' ? undefined : 'dim',
  ],
];

/** What a key asks for; undefined where it is none of the digits of the rows. */
export function actOf(key: string): readonly [Act, id: number] | undefined {
  const at = '123456789'.indexOf(key);
  const act = ACTS[at % ACTS.length];
  return key.length === 1 && act ? [act, Math.floor(at / ACTS.length)] : undefined;
}

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

  /** @param hasKeys whether a digit does something to the task of a row */
  constructor(
    private readonly title: readonly string[],
    private readonly io: Io,
    private readonly hasKeys = false,
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
    const head = [...this.title.map((line, index) => fitLine(line, screen, index ? 'dim' : 'bold')), ''];
    const further = this.hasKeys ? [KEYS_COLUMN] : [];
    const table =
      this.#status === undefined ? [] : [...statusTable(wholeCluster(this.#status), { screen, further }), ''];
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
