import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { listen } from '../../../../src/app/http/server/listen.js';
import { systemClock } from '../../../../src/core/base/system.js';

it('clients that are slow with their headers are let go', async () => {
  const listener = await listen({
    fetch: () => new Response(),
    at: { host: '127.0.0.1', port: 0 },
    label: '--http',
    clock: systemClock,
  });
  const slow = Array.from({ length: 200 }, () =>
    connect(listener.address.port, '127.0.0.1').on('error', () => {}),
  );
  for (const socket of slow) socket.write('GET / HTTP/1.1\r\nhost: x\r\nx-slow: ');
  const trickle = setInterval(() => slow.forEach((socket) => void socket.write('a')), 500);
  try {
    const ends = await Promise.all(slow.map((socket) => text(socket).catch(() => '')));
    for (const end of ends) expect(end).toMatch(/^(HTTP\/1\.1 408 |$)/);
  } finally {
    clearInterval(trickle);
    for (const socket of slow) socket.destroy();
    await listener.close();
  }
});
