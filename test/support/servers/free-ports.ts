import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * A port that is given away is reserved by a socket that listens on the port so far above it: the system
 * releases it with the process.
 */
const RESERVATION_OFFSET = 6_000;

/**
 * Ports of 127.0.0.1 on which nothing listens, all different. Until this process ends, no other caller on
 * this machine gets them: a server may be started on them at any time, and again later, and a test may count
 * on it that nothing else answers there.
 *
 * They lie below the ports that systems give to outgoing connections, since a client that keeps trying to
 * reach a server that is down might otherwise take its port, or even connect to itself.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = randomInt(20_000, 20_000 + RESERVATION_OFFSET);
    const reservation = await listen(port + RESERVATION_OFFSET);
    if (reservation === undefined) continue;
    const probe = await listen(port);
    if (probe === undefined) reservation.close();
    else {
      probe.close();
      await once(probe, 'close');
      reservation.unref();
      ports.push(port);
    }
  }
  return ports;
}

/** One of them. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port as number;
}

/** Undefined where the port is taken. */
async function listen(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port, '127.0.0.1');
  return once(server, 'listening').then(
    () => server,
    () => undefined,
  );
}
