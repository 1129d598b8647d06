import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';

/** A server of a test. */
export interface Listening {
  readonly url: string;
  /** Also ends its connections. */
  close(): void;
}

/** Has a server listen on a free port of 127.0.0.1. */
export async function listening(server: Server): Promise<Listening> {
  const sockets = new Set<{ destroy(): void }>();
  server.on('connection', (socket) => sockets.add(socket));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
