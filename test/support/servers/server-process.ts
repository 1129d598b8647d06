import { installed } from '../installed.js';
import { freePort } from './free-ports.js';
import { type Launch, localServer, started } from './local-server.js';

/** A running server. */
export interface ServerProcess {
  readonly endpoint: string;
  /** Stops it and removes its folder. */
  stop(): Promise<void>;
}

/** Where a server is, installed where it is missing. @throws Error when it cannot be */
export function findServer(name: string): Promise<string> {
  return installed('install-store-server.sh', [name], 'CONTRIBUTING.md says what the tests need');
}

/**
 * Starts an HTTP server on 127.0.0.1 with a folder of its own.
 *
 * @throws Error when it does not answer
 */
export async function startServerProcess(
  name: string,
  launchOf: (folder: string, port: number) => Promise<Launch>,
): Promise<ServerProcess> {
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const server = await started(
    await localServer({
      name,
      launch: (folder) => launchOf(folder, port),
      // Any answer will do: who is asked without credentials refuses.
      isReady: async () => (await fetch(endpoint).catch(() => undefined)) !== undefined,
    }),
  );
  return { endpoint, stop: server.dispose };
}
