import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Free ports of 127.0.0.1, all different. They lie below those that systems give to outgoing connections, since a client that
 * keeps trying to reach a server that is down might otherwise take its port, or even connect to itself.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(20_000, 32_000);
    const server = createServer().listen(port, '127.0.0.1');
    const free = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (!free) continue;
    server.close();
    await once(server, 'close');
    ports.add(port);
  }
  return [...ports];
}

/** One of them. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port as number;
}
