import { describe, expect, it } from 'vitest';
import { OpenStreams } from './open-streams.js';

const GET = new Request('http://localhost/api/events');
const HEAD = new Request('http://localhost/api/events', { method: 'HEAD' });

/** A stream that goes on until it is cancelled, and makes something only when it is asked for it. */
class Source {
  asked = 0;
  cancelled: unknown;

  respond = async (): Promise<Response> => {
    const body = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          this.asked += 1;
          controller.enqueue(new TextEncoder().encode(`${this.asked}\n`));
        },
        cancel: (reason) => {
          this.cancelled = reason ?? 'cancelled';
        },
      },
      { highWaterMark: 0 },
    );
    return new Response(body, { status: 200, headers: { 'content-type': 'text/event-stream' } });
  };
}

describe('streams', () => {
  it('are so many at the most; further ones are refused until somebody has gone', async () => {
    const streams = new OpenStreams(2);
    const [first] = [await streams.answer(GET, new Source().respond), await streams.answer(GET, new Source().respond)];
    const third = () => streams.answer(GET, new Source().respond);
    await expect(third()).rejects.toMatchObject({ error: 'unavailable', headers: { 'retry-after': '5' } });
    await first.body?.cancel('gone');
    expect(streams.count).toBe(1);
    expect((await third()).headers.get('content-type')).toBe('text/event-stream');
    expect(streams.count).toBe(2);
  });

  it('are counted before they have begun: those who come at the same moment do not slip in', async () => {
    const streams = new OpenStreams(1);
    const source = new Source();
    const both = await Promise.allSettled([streams.answer(GET, source.respond), streams.answer(GET, source.respond)]);
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  });

  it('count no more once they have ended, failed, or could not begin', async () => {
    const streams = new OpenStreams(1);
    await expect(streams.answer(GET, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await (await streams.answer(GET, async () => new Response('short'))).text()).toBe('short');
    const failing = async () => new Response(new ReadableStream({ pull: (controller) => controller.error(new Error('broken')) }));
    await expect((await streams.answer(GET, failing)).text()).rejects.toThrow('broken');
    expect((await streams.answer(GET, async () => new Response(null, { status: 204 }))).status).toBe(204);
    expect(streams.count).toBe(0);
  });

  it('that nobody reads are not read ahead', async () => {
    const source = new Source();
    const response = await new OpenStreams().answer(GET, source.respond);
    await new Promise((resolve) => setImmediate(resolve));
    expect(source.asked).toBe(0);
    const reader = response.body?.getReader();
    await reader?.read();
    expect(source.asked).toBe(1);
    await reader?.cancel('gone');
    expect(source.cancelled).toBe('gone');
  });

  it('are not left running for HEAD, which nobody reads', async () => {
    const [streams, source] = [new OpenStreams(), new Source()];
    const response = await streams.answer(HEAD, source.respond);
    expect({ body: response.body, type: response.headers.get('content-type') }).toEqual({ body: null, type: 'text/event-stream' });
    expect([source.cancelled, streams.count]).toEqual(['cancelled', 0]);
  });

  it('all end when the server does, and none begins any more', async () => {
    const [streams, source] = [new OpenStreams(), new Source()];
    const response = await streams.answer(GET, source.respond);
    streams.endAll();
    expect(await response.text()).toBe('');
    expect([source.cancelled, streams.count]).toEqual(['cancelled', 0]);
    await expect(streams.answer(GET, source.respond)).rejects.toMatchObject({ error: 'unavailable' });
  });

  it('end also where one was being made when the server ended', async () => {
    const [streams, source] = [new OpenStreams(), new Source()];
    const making = streams.answer(GET, source.respond);
    streams.endAll();
    expect(await (await making).text()).toBe('');
  });
});
