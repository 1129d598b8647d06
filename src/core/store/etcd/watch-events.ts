import type { IncomingMessage } from 'node:http';
import type { EtcdKeyValue } from './key-value.js';

/** A change of a key. */
export interface EtcdEvent {
  readonly type?: 'DELETE';
  readonly kv?: EtcdKeyValue;
}

/**
 * The changes that a watch reports, one message a line. Ends when the watch does: the server has cancelled
 * it, since the revision where it was to begin is compacted, or since it has lost the others.
 *
 * @throws what broke the connection, or that it was ended here
 */
export async function* watchEvents(response: IncomingMessage): AsyncGenerator<EtcdEvent> {
  let rest = '';
  for await (const text of response.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line === '') continue;
      const { result } = JSON.parse(line) as { result?: { canceled?: boolean; events?: EtcdEvent[] } };
      if (result === undefined || result.canceled) return;
      yield* result.events ?? [];
    }
  }
}
