/** One event of a stream of server-sent events. */
export interface StreamEvent {
  /** `message` where the stream names none. */
  readonly event: string;
  readonly data: string;
}

/** More than this in one event is no console talking, in characters: 10,000 ids take about 3 million. */
const LONGEST_EVENT = 64_000_000;

/**
 * Takes a stream of server-sent events apart, as the HTML standard (9.2.6) says, as its pieces arrive. Ids and the time to reconnect are left
 * out: the page numbers nothing by them, and has a backoff of its own.
 */
export class EventStreamParser {
  #rest = '';
  #event = '';
  #data: string[] = [];
  #length = 0;
  /** The last piece ended in a CR, so an LF at the beginning of the next one belongs to it. */
  #endedInReturn = false;

  /**
   * The events that are complete with this piece.
   *
   * @throws {RangeError} when one is longer than anything that a console sends
   */
  push(piece: string): StreamEvent[] {
    if (piece === '') return [];
    const text = this.#endedInReturn && piece.startsWith('\n') ? piece.slice(1) : piece;
    this.#endedInReturn = piece.endsWith('\r');
    const lines = text.split(/\r\n|\r|\n/);
    lines[0] = this.#rest + (lines[0] ?? '');
    this.#rest = lines.pop() ?? '';
    this.#length += piece.length;
    if (this.#length > LONGEST_EVENT) throw new RangeError('an event of the stream is too long');
    return lines.flatMap((line) => this.#line(line));
  }

  #line(line: string): StreamEvent[] {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'event') this.#event = value;
    if (field === 'data') this.#data.push(value);
    return [];
  }

  #dispatch(): StreamEvent[] {
    const event = { event: this.#event || 'message', data: this.#data.join('\n') };
    const isEmpty = this.#data.length === 0;
    this.#event = '';
    this.#data = [];
    this.#length = this.#rest.length;
    return isEmpty ? [] : [event];
  }
}
