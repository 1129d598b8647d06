import { describe, expect, it } from 'vitest';
import { StoreError } from '../lease-store.js';
import type { StoreRequest } from '../store-request.js';
import { classifyReply } from './classify-reply.js';

const url = 'postgres://orders@db-1:5432/leases/fleet';

/** An error of the server, as `pg` makes it. The language of its texts is a setting. */
function answer(code: string) {
  return Object.assign(new Error('Warum nicht.'), { severity: 'FEHLER', code });
}

function judged(
  error: unknown,
  { sent = true, operation = 'create', signal }: Partial<StoreRequest & { sent: boolean }> = {},
): string {
  try {
    const request = { operation, url, key: '0.json', ...(signal && { signal }) };
    return classifyReply(error, request, 'db-1:5432', sent);
  } catch (thrown) {
    if (!(thrown instanceof StoreError)) throw thrown;
    return `${thrown.fault}, ${thrown.outcome}: ${thrown.message}`;
  }
}

describe('an error of the server', () => {
  it.each([
    ['40001', 'conflict'],
    ['23505', 'conflict'],
    ['42710', 'conflict'],
    ['42P01', 'absent'],
    ['40P01', 'unavailable, not-applied: '],
    ['55P03', 'unavailable, not-applied: '],
    ['57014', 'unavailable, not-applied: '],
    [
      '53100',
      `unavailable, not-applied: ${url}: creating 0.json: db-1:5432 cannot do it now (53100: Warum nicht.)`,
    ],
    [
      '25006',
      `unavailable, not-applied: ${url}: creating 0.json: db-1:5432 is a replica or takes no writes: name the primary, or all servers, in the URL of the store (25006: Warum nicht.)`,
    ],
    ['55000', 'unavailable, not-applied: '],
    [
      '42501',
      `denied, not-applied: ${url}: creating 0.json: access denied, needs SELECT, INSERT, UPDATE and DELETE on the table nodelease, and where there is none CREATE on the schema (42501: Warum nicht.)`,
    ],
    ['22021', `rejected, not-applied: ${url}: creating 0.json: refused (22021: Warum nicht.)`],
    ['3F000', 'rejected, not-applied: '],
  ])('%s means: %s', (code, expected) => {
    const said = judged(answer(code));
    expect(expected.endsWith(' ') ? said.startsWith(expected) : said === expected, said).toBe(true);
  });

  it.each([
    ['57P01', 'unavailable'],
    ['57P02', 'unavailable'],
    // "server conn crashed" of a pooler.
    ['08P01', 'unavailable'],
    ['40003', 'unavailable'],
    ['XX000', 'rejected'],
    ['58030', 'rejected'],
  ])('%s leaves the outcome of a statement unknown', (code, fault) => {
    expect(judged(answer(code))).toMatch(new RegExp(`^${fault}, unknown: `));
  });

  it.each([
    [
      '28P01',
      `denied, not-applied: ${url}: creating 0.json: wrong user or password: see PGPASSWORD, and PGPASSFILE (28P01: Warum nicht.)`,
    ],
    [
      '28000',
      `denied, not-applied: ${url}: creating 0.json: access denied: see the user, pg_hba.conf, and PGSSLMODE if db-1:5432 wants TLS (28000: Warum nicht.)`,
    ],
    ['3D000', `missing, not-applied: ${url}: database does not exist (3D000: Warum nicht.)`],
    [
      '53300',
      `unavailable, not-applied: ${url}: creating 0.json: db-1:5432 cannot do it now (53300: Warum nicht.)`,
    ],
    [
      '57P03',
      `unavailable, not-applied: ${url}: creating 0.json: db-1:5432 cannot do it now (57P03: Warum nicht.)`,
    ],
    [
      '57P01',
      `unavailable, not-applied: ${url}: creating 0.json: db-1:5432 cannot do it now (57P01: Warum nicht.)`,
    ],
    // A pooler that knows no such user, or refuses an option.
    ['08P01', `rejected, not-applied: ${url}: creating 0.json: refused (08P01: Warum nicht.)`],
  ])('%s, before a statement was sent, means: %s', (code, expected) => {
    expect(judged(answer(code), { sent: false })).toBe(expected);
  });
});

it('a read is no write that another one can get in the way of', () => {
  expect(judged(answer('40001'), { operation: 'list' })).toMatch(/^unavailable, not-applied: /);
});

describe('a connection that fails', () => {
  const lost = (code?: string) => Object.assign(new Error('It broke.'), code && { code });

  it.each([
    [
      lost('ECONNRESET'),
      true,
      `unreachable, unknown: ${url}: creating 0.json: db-1:5432: connection lost: It broke.`,
    ],
    // Five characters, as the codes of the server.
    [
      lost('EPIPE'),
      true,
      `unreachable, unknown: ${url}: creating 0.json: db-1:5432: connection lost: It broke.`,
    ],
    [lost(), true, `unreachable, unknown: ${url}: creating 0.json: db-1:5432: connection lost: It broke.`],
    [
      lost('ECONNREFUSED'),
      false,
      `unreachable, not-applied: ${url}: creating 0.json: db-1:5432: cannot connect: It broke.`,
    ],
    [
      lost(),
      false,
      `unreachable, not-applied: ${url}: creating 0.json: db-1:5432: connection lost: It broke.`,
    ],
    [
      new AggregateError([lost('ECONNREFUSED'), lost('ECONNREFUSED')]),
      false,
      `unreachable, not-applied: ${url}: creating 0.json: db-1:5432: cannot connect: It broke., It broke.`,
    ],
    [
      new DOMException('no answer within 5000 ms', 'TimeoutError'),
      true,
      `unreachable, unknown: ${url}: creating 0.json: db-1:5432: no answer within 5000 ms`,
    ],
    [
      lost('DEPTH_ZERO_SELF_SIGNED_CERT'),
      false,
      `rejected, not-applied: ${url}: creating 0.json: db-1:5432: the server's certificate is not trusted: It broke.`,
    ],
  ])('%s (sent: %s) means: %s', (error, sent, expected) => {
    expect(judged(error, { sent })).toBe(expected);
  });

  it('is a request that was given up, where its signal has aborted', () => {
    const signal = AbortSignal.abort(new Error('enough'));
    expect(judged(signal.reason, { signal })).toBe(`unreachable, unknown: ${url}: creating 0.json: given up`);
    expect(judged(signal.reason, { signal, sent: false })).toContain('unreachable, not-applied: ');
  });
});
