import { DISCOVERY_PATH } from '../tree-paths.js';
import type { BoundCall, BoundSession } from './bound-session.js';

/** Where those who have lost a race for an id stand in line: ephemeral sequential znodes, none as long as nobody has to. */
export const CLAIMS_PATH = `${DISCOVERY_PATH}/claims`;

/**
 * A place in the line of those who contend for ids, so that many who start together do not all go for the same one: each leaves as many
 * free ids to the others as there are others before it. The place is given up in the same transaction that claims an id; who looks at the
 * ids first, and at the line after, can therefore take a free id to be somebody's who has it already, and never the other way round. That
 * is what keeps the ids dense: one goes past a free id only where another one before it in the line is about to take it.
 *
 * Not guaranteed: order. Who has not lost a race is not in the line, and may be quicker.
 */
export class ClaimQueue {
  #ticket: string | undefined;
  #uncertain = false;

  /** @param mark tells our tickets from others': unique for all practical purposes, letters and digits */
  constructor(
    private readonly session: BoundSession,
    private readonly mark: string,
  ) {}

  /** The znode of our place; undefined while we have none. */
  get ticket(): string | undefined {
    return this.#ticket;
  }

  /**
   * Gets in line. Does nothing where we stand there already.
   *
   * @throws {ZooKeeperError} may be called again then: it does not take a second place
   */
  async join(call?: BoundCall): Promise<void> {
    if (this.#ticket === undefined && this.#uncertain) this.#ticket = this.#own(await this.#line(call));
    if (this.#ticket !== undefined) return;
    this.#uncertain = true;
    this.#ticket = await this.session.createWithParents(`${CLAIMS_PATH}/${this.mark}-`, '', 'ephemeral-sequential', call);
    this.#uncertain = false;
  }

  /** How many are before us in the line. Where we do not stand in it, 0. */
  async rank(call?: BoundCall): Promise<number> {
    if (this.#ticket === undefined) return 0;
    const line = await this.#line(call);
    const own = this.#own(line);
    this.#ticket = own;
    return own === undefined ? 0 : line.indexOf(own);
  }

  /** Our place has been given up by the transaction that claimed an id. */
  left(): void {
    this.#ticket = undefined;
  }

  /** Gives up our place, for who leaves without an id. */
  async leave(call?: BoundCall): Promise<void> {
    if (this.#ticket === undefined && !this.#uncertain) return;
    const ticket = this.#ticket ?? this.#own(await this.#line(call));
    if (ticket !== undefined) await this.session.remove(ticket, undefined, call);
    this.#ticket = undefined;
    this.#uncertain = false;
  }

  /** All places, the first in line first. */
  async #line(call?: BoundCall): Promise<string[]> {
    const names = (await this.session.children(CLAIMS_PATH, call)) ?? [];
    const order = (name: string) => name.slice(name.lastIndexOf('-') + 1);
    return [...names].sort((a, b) => (order(a) < order(b) ? -1 : 1)).map((name) => `${CLAIMS_PATH}/${name}`);
  }

  #own(line: readonly string[]): string | undefined {
    return line.find((path) => path.startsWith(`${CLAIMS_PATH}/${this.mark}-`));
  }
}
