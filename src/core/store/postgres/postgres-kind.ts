import { parsePrefix, parseServers, type StoreKind, splitPath } from '../store-kind.js';
import type { PostgresStoreOptions } from './open-postgres-store.js';

const SUCH_AS = 'postgres://USER@HOST:5432[,HOST:5432]…/DB/prefix';

/** The rows of a table in PostgreSQL that have this prefix. */
export const POSTGRES: StoreKind<PostgresStoreOptions> = {
  schemes: ['postgres', 'postgresql'],
  form: 'postgres://USER@HOST:5432/DB/prefix',

  parse(text, { scheme, fail }) {
    const [, user = '', password, rest = ''] = /^(?:([^/:@]*)(:[^/]*)?@)?(.*)$/s.exec(text) ?? [];
    if (password !== undefined)
      fail(`no password in the URL, but in PGPASSWORD or a password file (PGPASSFILE): ${SUCH_AS}`);
    const { servers, path } = parseServers(rest, 'path', 5432, SUCH_AS, fail);
    const [database, below] = splitPath(path);
    const decoded = (part: string) => {
      try {
        const text = decodeURIComponent(part);
        if (!/\p{Cc}/u.test(text)) return text;
      } catch {
        // As below.
      }
      return fail(`percent-encoded text (%25 for a percent sign) in ${SUCH_AS}`);
    };
    const prefix = parsePrefix(below, SUCH_AS, fail);
    if (database === '' || prefix === '')
      fail(`a database, and a prefix that no other fleet has, in ${SUCH_AS}`);
    // Once: what is appended for a lock belongs to all servers.
    const url = `${scheme}://${text.replaceAll(`/${path},`, ',').replace(/\/$/, '')}`;
    return { url, servers, user: decoded(user), database: decoded(database), prefix };
  },

  open: async (options) => (await import('./open-postgres-store.js')).openPostgresStore(options),
};
