import type { Socket } from 'node:net';
import type { Client as PgClient } from 'pg';
import { messageOf } from '../../base/fields.js';
import { StoreError } from '../lease-store.js';

/** What a client has in addition to what its types say. */
interface Inner {
  readonly connection: {
    attachListeners(stream: Pick<Socket, 'listeners' | 'off' | 'on' | 'destroy'>): void;
  };
}

/**
 * Clients whose connection ends at a message that `pg` does not know, such as a request for Kerberos: `pg` throws
 * where no caller is, and that ends the process.
 */
export function safeClient(Client: typeof PgClient, url: string): typeof PgClient {
  return class extends Client {
    constructor(...config: ConstructorParameters<typeof PgClient>) {
      super(...config);
      const { connection } = this as unknown as Inner;
      const attach = connection.attachListeners.bind(connection);
      connection.attachListeners = (stream) => {
        attach(stream);
        const [parse] = stream.listeners('data').slice(-1) as [(bytes: Buffer) => void];
        stream.off('data', parse).on('data', (bytes: Buffer) => {
          try {
            parse(bytes);
          } catch (error) {
            const detail = `the server wants another authentication than by a password or a certificate, such as Kerberos, or is not PostgreSQL${messageOf(error)}`;
            stream.destroy(new StoreError(`${url}: ${detail}`, { fault: 'rejected', outcome: 'unknown' }));
          }
        });
      };
    }
  };
}
