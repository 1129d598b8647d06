import { describe, expect, it } from 'vitest';
import { OpenStreams } from './open-streams.js';

/** Goes on until it is ended, and makes something only when it is asked for it. */
class Source {
  asked = 0;
  ended = false;
  gone: AbortSignal | undefined;

  readonly open = async function* (this: Source, gone: AbortSignal): AsyncGenerator<Uint8Array, void> {
    this.gone = gone;
    try {
      for (;;) {
        this.asked += 1;
        yield new TextEncoder().encode(`${this.asked}\n`);
      }
    } finally {
      this.ended = true;
    }
  }.bind(this);
}

/** A source that yields nothing until its client has gone. */
async function* silent(gone: AbortSignal): AsyncGenerator<Uint8Array, void> {
  await new Promise((_resolve, reject) => gone.addEventListener('abort', () => reject(gone.reason)));
}

describe('streams', () => {
  it('are bounded; further ones are refused until a client has gone', async () => {
    const streams = new OpenStreams(2);
    const [first] = [streams.open(new Source().open), streams.open(new Source().open)];
    const third = () => streams.open(new Source().open);
    expect(third).toThrow(expect.objectContaining({ error: 'unavailable', headers: { 'retry-after': '5' } }));
    await first.cancel('gone');
    expect(streams.count).toBe(1);
    third();
    expect(streams.count).toBe(2);
  });

  it('of their own make room for a new client, end with the others, and are sent what comes last', async () => {
    const streams = new OpenStreams(1);
    const own = streams.ofTheirOwn(2);
    const last = () => new TextEncoder().encode('the end');
    const all = [1, 2, 3].map(() => own.open(silent, last));
    expect([own.count, streams.count]).toEqual([2, 0]);
    const texts = all.map((stream) => new Response(stream).text());
    expect(await texts[0]).toBe('the end');
    streams.endAll();
    expect(await Promise.all(texts)).toEqual(['the end', 'the end', 'the end']);
    expect(() => own.open(silent)).toThrow(expect.objectContaining({ error: 'unavailable' }));
  });

  it('are refused to a page of another origin, also where it sends no origin', async () => {
    const streams = new OpenStreams();
    for (const headers of [{ origin: 'http://evil.example' }, { 'sec-fetch-site': 'cross-site' }])
      await expect(
        streams.answer(
          new Request('http://127.0.0.1:7070/api/events', { headers: Object.entries(headers) }),
          silent,
        ),
      ).rejects.toMatchObject({ error: 'forbidden' });
    expect(streams.count).toBe(0);
  });

  it('pass through nginx at once, which keeps small answers back until there is more', async () => {
    const { headers } = await new OpenStreams().answer(new Request('http://127.0.0.1:7070/'), silent);
    expect(headers.get('x-accel-buffering')).toBe('no');
  });

  it('count no more once they have ended or failed', async () => {
    const streams = new OpenStreams(1);
    const short = async function* () {
      yield new TextEncoder().encode('short');
    };
    expect(await new Response(streams.open(short)).text()).toBe('short');
    const failing = async function* () {
      yield new Uint8Array(1);
      throw new Error('broken');
    };
    await expect(new Response(streams.open(failing)).text()).rejects.toThrow('broken');
    expect(streams.count).toBe(0);
  });

  it('that no client reads are not read ahead, and end when the client goes', async () => {
    const source = new Source();
    const stream = new OpenStreams().open(source.open);
    await new Promise((resolve) => setImmediate(resolve));
    expect(source.asked).toBe(0);
    const reader = stream.getReader();
    await reader.read();
    expect(source.asked).toBe(1);
    await reader.cancel('gone');
    expect([source.ended, source.gone?.aborted]).toEqual([true, true]);
  });

  it('end when the client goes that waits for more', async () => {
    const streams = new OpenStreams();
    const reader = streams.open(silent).getReader();
    const reading = reader.read();
    await reader.cancel();
    expect([await reading, streams.count]).toEqual([{ done: true, value: undefined }, 0]);
  });

  it('all end when the server does, whether their clients read or not, and none begins any more', async () => {
    const [streams, source] = [new OpenStreams(), new Source()];
    const slow = streams.open(source.open).getReader();
    await slow.read();
    const waiting = new Response(streams.open(silent)).text();
    streams.endAll();
    expect([(await slow.read()).done, await waiting, streams.count]).toEqual([true, '', 0]);
    expect([source.ended, source.gone?.aborted]).toEqual([true, true]);
    expect(() => streams.open(source.open)).toThrow(expect.objectContaining({ error: 'unavailable' }));
  });
});
