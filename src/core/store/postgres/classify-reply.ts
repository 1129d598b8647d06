import { messageOf, textOf } from '../../base/fields.js';
import { StoreError, type StoreFault } from '../lease-store.js';
import { connectionFailure, failing, givenUp, isConditional, type StoreRequest } from '../store-request.js';

/**
 * Says what a failed request means, by the SQLSTATE of the server and by the codes of Node; never by the text. This
 * is the only place that knows these. https://www.postgresql.org/docs/current/errcodes-appendix.html
 *
 * @param error also a warning of the server
 * @param server `HOST:PORT`
 * @param sent false where the statement cannot have reached the server
 * @returns `conflict` where another write came first, `absent` where there is no table
 * @throws {StoreError} for everything else
 */
export function classifyReply(
  error: unknown,
  request: StoreRequest,
  server: string,
  sent: boolean,
): 'conflict' | 'absent' {
  if (error instanceof StoreError) throw error;
  const code = textOf(error, 'code') ?? '';
  // Codes of Node may look like those of the server, EPIPE for one.
  if (textOf(error, 'severity') === undefined) {
    if (request.signal?.aborted) throw givenUp(request, request.signal.reason, sent);
    throw connectionFailure(
      error,
      (cause) => (fault, outcome, detail) =>
        failing(request, cause)(fault, sent ? outcome : 'not-applied', `${server}: ${detail}`),
      undefined,
    );
  }
  if (CONFLICTS.includes(code) && isConditional(request)) return 'conflict';
  if (code === '42P01') return 'absent';
  const outcome = sent && !NOT_APPLIED.test(code) ? 'unknown' : 'not-applied';
  // A pooler says the same when it refuses a client and when its server has ended.
  const isRefused = !sent && code === '08P01';
  const [, fault = 'rejected', what = 'refused'] =
    MEANINGS.find(([codes]) => !isRefused && codes.test(code)) ?? [];
  throw failing(request)(fault, outcome, `${what.replace('SERVER', server)} (${code}${messageOf(error)})`);
}

/** Serialization, under another isolation level than the default. A table that another task creates. */
const CONFLICTS = ['40001', '23505', '42710'];

/** The first row for a code counts. */
const MEANINGS: readonly (readonly [codes: RegExp, fault: StoreFault, what: string])[] = [
  [/^28P01/, 'denied', 'wrong user or password: see PGPASSWORD, and PGPASSFILE'],
  [/^28/, 'denied', 'access denied: see the user, pg_hba.conf, and PGSSLMODE if SERVER wants TLS'],
  [
    /^42501/,
    'denied',
    'access denied, needs SELECT, INSERT, UPDATE and DELETE on the table nodelease, and where there is none CREATE on the schema',
  ],
  [/^3D/, 'missing', 'database does not exist'],
  [
    /^(25006|55000)/,
    'unavailable',
    'SERVER is a replica or takes no writes: name the primary, or all servers, in the URL of the store',
  ],
  [
    /^01000/,
    'unavailable',
    'SERVER has given up the wait for its synchronous standby, which may lack the write',
  ],
  [/^(08|40|53|55|57)/, 'unavailable', 'SERVER cannot do it now'],
];

/**
 * The statement was refused or rolled back. Not in here: a server or a pooler that ended while it was at work, and
 * failures in the middle of a commit.
 */
const NOT_APPLIED = /^(0A|2[1-8]|3[DF]|40(?!003)|42|5[345]|57014|57P03)/;
