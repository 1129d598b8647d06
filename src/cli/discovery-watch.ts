import { aborted } from '../base/abort.js';
import { DISCOVERY_PATH } from '../discovery/tree-paths.js';
import type { DiscoveryOptions } from '../monitor/discovery-report.js';
import { readDiscovery } from '../monitor/discovery-snapshot.js';
import type { SessionState } from '../zookeeper/session-state.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { type Color, paintFor } from './color.js';
import { changeReport, changeText, type DiscoveryChange } from './discovery-changes.js';
import { DiscoveryFollower } from './discovery-follower.js';
import { ExitCode, exitCodeOfSignal } from './exit-codes.js';
import type { Io } from './io.js';
import { Interrupted } from './signal-relay.js';
import { complain } from './store-command.js';
import { pluralize, printable } from './text.js';

/** What becomes of the connection, as one line of JSON has it. */
export interface ConnectionReport {
  readonly time: string;
  /** `watching`: all that was there has been told. `expired`: the session has ended; what follows is told in a new one. */
  readonly change: 'watching' | 'lost' | 'expired' | 'restored';
  readonly kind: 'connection';
  readonly sessionId: string | null;
  readonly problem: string | null;
}

const COLORS: Readonly<Record<DiscoveryChange['kind'] | ConnectionReport['change'], Color | undefined>> = {
  present: undefined,
  joined: 'green',
  changed: 'cyan',
  left: 'yellow',
  watching: 'dim',
  lost: 'red',
  expired: 'red',
  restored: 'green',
};

/**
 * Shows what is announced and then every change, one on a line, until a signal ends it: 0 for SIGINT and SIGTERM. A lost connection is
 * said, and survived; once it is restored, whatever changed meanwhile is told.
 *
 * @throws {ZooKeeperError} when there is no answer at the beginning, or a folder may not be read
 */
export async function watchDiscovery(zookeeper: ZooKeeper, options: DiscoveryOptions, io: Io, signal: AbortSignal): Promise<number> {
  const teller = new Teller(zookeeper.description, options, io);
  try {
    await zookeeper.whenConnected({ signal });
    const forget = zookeeper.onState((state) => teller.session(state));
    const { entries = [], denied = [] } = (await readDiscovery(zookeeper, DISCOVERY_PATH, signal)) ?? {};
    for (const path of denied) complain(io, `${path}: no-auth: these credentials may not read the data`);
    for (const entry of entries) teller.change({ kind: 'present', entry, previous: undefined });
    teller.watching(zookeeper.state, entries.length);
    const follower = new DiscoveryFollower(zookeeper, entries, (change) => teller.change(change));
    try {
      await aborted(signal);
    } finally {
      follower.close();
      forget();
    }
  } catch (error) {
    if (!(signal.reason instanceof Interrupted)) throw error;
  }
  const { signal: name } = signal.reason as Interrupted;
  return name === 'SIGINT' || name === 'SIGTERM' ? ExitCode.ok : exitCodeOfSignal(name);
}

/** Puts what happens into lines. */
class Teller {
  #lost = false;

  constructor(
    private readonly description: string,
    private readonly options: DiscoveryOptions,
    private readonly io: Io,
  ) {}

  change(change: DiscoveryChange): void {
    if (this.options.json) this.io.stdout(`${JSON.stringify(changeReport(this.#time(), change))}\n`);
    else this.#line(change.kind, changeText(change));
  }

  watching(state: SessionState, count: number): void {
    const text = `${count === 0 ? 'nobody announces anything' : pluralize(count, 'announcement')} at ${this.description}: watching`;
    this.#connection('watching', state, text);
  }

  session(state: SessionState): void {
    const because = 'problem' in state && state.problem !== undefined ? `: ${state.problem}` : '';
    if (state.status === 'suspended') this.#connection('lost', state, `connection to ${this.description} lost${because}`);
    else if (state.status === 'expired') this.#connection('expired', state, `session ${state.sessionId} has expired`);
    else if (state.status === 'connected' && this.#lost)
      this.#connection('restored', state, `connection to ${this.description} restored, session ${state.sessionId}`);
    this.#lost = state.status === 'suspended' || state.status === 'expired' || (this.#lost && state.status === 'connecting');
  }

  #connection(change: ConnectionReport['change'], state: SessionState, text: string): void {
    const report: ConnectionReport = {
      time: this.#time(),
      change,
      kind: 'connection',
      sessionId: 'sessionId' in state ? state.sessionId : null,
      problem: 'problem' in state ? (state.problem ?? null) : null,
    };
    if (this.options.json) this.io.stdout(`${JSON.stringify(report)}\n`);
    else this.#line(change, text);
  }

  #line(kind: keyof typeof COLORS, text: string): void {
    const paint = paintFor(this.io.screen()?.color ?? false);
    this.io.stdout(`${this.#time()}  ${paint(printable(text), COLORS[kind])}\n`);
  }

  #time(): string {
    return new Date(this.io.clock.now()).toISOString();
  }
}
