import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/system.js';
import { type HttpListener, type ListenOptions, listen } from '../../../src/http/listen.js';

let listener: HttpListener;

afterEach(() => listener.close());

async function start(options: Partial<ListenOptions> & Pick<ListenOptions, 'fetch'>): Promise<void> {
  listener = await listen({ at: { host: '127.0.0.1', port: 0 }, label: '--http', clock: systemClock, ...options });
}

describe('a flood of requests that are sent ahead', () => {
  /** Sends as much as is taken, over 50 connections, each opened again when it is closed, for as long as this process lives. */
  const FLOOD = `
    import { connect } from 'node:net';
    const much = Buffer.from('GET /livez HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n'.repeat(5000));
    let closed = 0;
    const go = () => {
      const socket = connect(Number(process.argv[1]), '127.0.0.1');
      const more = () => socket.destroyed || (socket.write(much) ? setTimeout(more, 20) : socket.once('drain', more));
      socket.on('error', () => {}).on('connect', more).resume().on('close', () => {
        closed += 1;
        if (closed === 100) console.log('a hundred times');
        setTimeout(go, 5);
      });
    };
    for (let i = 0; i < 50; i += 1) go();
  `;

  it('does not fill the memory, and health checks are answered', async () => {
    await start({ fetch: () => new Response(), isUrgent: (path) => path === '/livez' });
    const before = process.memoryUsage().rss;
    let most = 0;
    let answered = 0;
    let isOver = false;
    const flood = spawn(process.execPath, ['--input-type=module', '-e', FLOOD, String(listener.address.port)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const checks = (async () => {
        while (!isOver) {
          const [response] = await once(request(`${listener.url}/livez`, { agent: false }).end(), 'response');
          response.resume();
          answered += 1;
          most = Math.max(most, process.memoryUsage().rss - before);
        }
      })();
      await Promise.race([once(flood.stdout, 'data'), systemClock.sleep(30_000)]);
      isOver = true;
      await checks;
    } finally {
      flood.kill('SIGKILL');
    }
    expect(answered).toBeGreaterThan(0);
    expect(most / 1e6).toBeLessThan(300);
  });
});
