import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import { Feed, type FeedState, type StreamEvent } from './feed.js';

/** A server, of which a test says what it answers. */
class Server {
  readonly asked: { readonly token: string | undefined; readonly at: number }[] = [];
  answer: () => Response = () => this.stream();
  #streams: ReadableStreamDefaultController<Uint8Array>[] = [];

  constructor(private readonly clock: VirtualClock) {}

  readonly open = async (token: string | undefined, signal: AbortSignal): Promise<Response> => {
    this.asked.push({ token, at: this.clock.monotonic() });
    const response = this.answer();
    signal.addEventListener('abort', () => {
      for (const stream of this.#streams.splice(0)) stream.error(signal.reason);
    });
    return response;
  };

  stream(): Response {
    return new Response(new ReadableStream({ start: (controller) => void this.#streams.push(controller) }));
  }

  say(text: string): void {
    this.sayBytes(new TextEncoder().encode(text));
  }

  sayBytes(bytes: Uint8Array): void {
    for (const stream of this.#streams) stream.enqueue(bytes);
  }

  hangUp(): void {
    for (const stream of this.#streams.splice(0)) stream.close();
  }
}

const HELLO = 'event: hello\ndata: {}\n\n';

let clock: VirtualClock;
let server: Server;
let states: FeedState[];
let events: StreamEvent[];
let feed: Feed;
let chance: number;
let onEvent: (event: StreamEvent) => void;

beforeEach(() => {
  clock = new VirtualClock();
  server = new Server(clock);
  states = [];
  events = [];
  chance = 0.999;
  onEvent = (event) => events.push(event);
  feed = new Feed({
    open: server.open,
    clock,
    random: () => chance,
    onState: (state) => states.push(state),
    onEvent: (event) => onEvent(event),
  });
});

// A silence or the next attempt, and nothing of what was before.
afterEach(() => expect(clock.sleepers, 'one wait at a time').toBe(1));

const start = async () => {
  void feed.run();
  await clock.advance(0);
};

const last = () => states.at(-1);

describe('the connection to the server', () => {
  it('is live once something has come, and hands on what comes', async () => {
    await start();
    expect(states).toEqual([{ kind: 'connecting' }]);
    server.say(HELLO);
    await clock.advance(0);
    expect([last(), events]).toEqual([{ kind: 'live' }, [{ event: 'hello', data: '{}' }]]);
  });

  it('is made again after it was lost, a second later, and says why', async () => {
    await start();
    server.say(HELLO);
    await clock.advance(0);
    server.hangUp();
    await clock.advance(0);
    expect(last()).toEqual({ kind: 'waiting', retryAt: 1_000, reason: 'the connection has ended' });
    await clock.advance(999);
    expect(server.asked.length).toBe(1);
    await clock.advance(1);
    expect(server.asked.length).toBe(2);
  });

  it('is tried for ever, less and less often, but at least every ten seconds', async () => {
    server.answer = () => {
      throw new TypeError('Failed to fetch');
    };
    await start();
    await clock.advance(60_000);
    const gaps = server.asked.map(({ at }, index) => at - (server.asked[index - 1]?.at ?? 0)).slice(1);
    expect(gaps.map((gap) => Math.round(gap / 1_000))).toEqual([1, 2, 4, 8, 10, 10, 10, 10]);
    expect(last()).toMatchObject({ kind: 'waiting', reason: 'the server cannot be reached' });
  });

  it('is not tried by all pages at the same moment', async () => {
    chance = 0;
    server.answer = () => {
      throw new TypeError('Failed to fetch');
    };
    await start();
    await clock.advance(20_000);
    const gaps = server.asked.map(({ at }, index) => at - (server.asked[index - 1]?.at ?? 0)).slice(1);
    expect(gaps).toEqual([1_000, 1_000, 2_000, 4_000, 5_000, 5_000]);
  });

  it('is tried soon again after it was live', async () => {
    server.answer = () =>
      new Response('{"error":"unavailable","message":"too many requests are under way"}', { status: 503 });
    await start();
    await clock.advance(8_000);
    expect(last()).toMatchObject({ kind: 'waiting', reason: 'too many requests are under way' });
    server.answer = () => server.stream();
    await clock.advance(10_000);
    server.say(HELLO);
    await clock.advance(0);
    const lostAt = clock.monotonic();
    server.hangUp();
    await clock.advance(0);
    expect(last()).toMatchObject({ kind: 'waiting', retryAt: lostAt + 1_000 });
  });

  it('is given up when nothing has been heard for 25 seconds, comments included', async () => {
    await start();
    server.say(HELLO);
    for (let index = 0; index < 5; index += 1) {
      await clock.advance(20_000);
      server.say(': heartbeat\n\n');
      await clock.advance(0);
    }
    expect(last()).toEqual({ kind: 'live' });
    await clock.advance(25_000);
    expect(last()).toMatchObject({ kind: 'waiting', reason: 'the server has fallen silent' });
  });

  it('is tried at once on request', async () => {
    server.answer = () => new Response(null, { status: 500 });
    await start();
    expect(last()).toMatchObject({ reason: 'the server answered with status 500' });
    feed.retry();
    await clock.advance(0);
    expect(server.asked.length).toBe(2);
  });

  it('waits for a token where one is wanted, and says when it is the wrong one', async () => {
    server.answer = () =>
      server.asked.at(-1)?.token === 'right' ? server.stream() : new Response(null, { status: 401 });
    await start();
    expect(last()).toEqual({ kind: 'token', refused: false });
    await clock.advance(100_000);
    expect(server.asked.length).toBe(1);
    feed.retry('wrong');
    await clock.advance(0);
    expect(last()).toEqual({ kind: 'token', refused: true });
    feed.retry('right');
    await clock.advance(0);
    server.say(HELLO);
    await clock.advance(0);
    expect(last()).toEqual({ kind: 'live' });
    server.hangUp();
    await clock.advance(1_000);
    server.hangUp();
    await clock.advance(0);
    feed.retry();
    await clock.advance(0);
    expect(server.asked.slice(-3).map(({ token }) => token)).toEqual(['right', 'right', 'right']);
  });

  it('is not lost in silence over something that the page does not understand', async () => {
    onEvent = () => JSON.parse('{');
    await start();
    server.say(HELLO);
    await clock.advance(0);
    expect(last()).toMatchObject({
      kind: 'waiting',
      reason: 'the server has sent something that this page does not understand',
    });
  });

  it('is given up over an event that never ends, before that fills the memory', async () => {
    await start();
    const piece = 'x'.repeat(8_000_000);
    for (let index = 0; index < 9; index += 1) {
      server.say(piece);
      await clock.advance(0);
    }
    expect(last()).toMatchObject({
      kind: 'waiting',
      reason: 'the server has sent an event that does not end',
    });
  });
});

const STREAM =
  'retry: 1000\nevent: hello\ndata: {"a":1,\ndata: "b":2}\n\n:\n\nid: 7\nevent: change\ndata: "é"\n\nevent: page\ndata: unfinished\n';

it('a stream is read the same however it is cut into pieces', async () => {
  const bytes = new TextEncoder().encode(STREAM);
  await start();
  for (let size = 1; size <= bytes.length; size += 1) {
    events = [];
    for (let at = 0; at < bytes.length; at += size) server.sayBytes(bytes.slice(at, at + size));
    await clock.advance(0);
    expect(events, `pieces of ${size}`).toEqual([
      { event: 'hello', data: '{"a":1,\n"b":2}' },
      { event: 'change', data: '"é"' },
    ]);
    server.hangUp();
    await clock.advance(1_000);
  }
});
