import { type StoredObject, StoreError } from '../lease-store.js';
import { checked, type ProbeCheck, type ProbeCheckId } from './probe-report.js';
import type { ProbedWrite, ProbeSession, WrittenObject } from './probe-session.js';

/**
 * Creates the object that the checks of listing and age look at; undefined when the store does not let it be
 * created.
 */
export async function checkCreate(
  session: ProbeSession,
): Promise<{ readonly check: ProbeCheck; readonly object?: WrittenObject }> {
  const { absent } = session.terms;
  const written = await session.establish(FIRST);
  if (written.status === 'written') return { check: checked('create', 'ok'), object: written };
  if (written.status === 'conflict') {
    return {
      check: checked(
        'create',
        'fault',
        `misunderstands ${absent}: refused to create keys that had never been used`,
      ),
    };
  }
  // All other refusals are not about the condition: another region, a key that encrypts.
  if (written.error.fault !== 'unsupported') throw written.error;
  return { check: checked('create', 'fault', `does not accept ${absent}: ${written.error.message}`) };
}

/** A second create of one key. */
export async function checkCreateOnce(session: ProbeSession): Promise<ProbeCheck> {
  const { key } = await established(session);
  const before = await session.read(key);
  const write = await session.create(key, bodyOf('second'));
  const what = 'a second create of the same key';
  return refusal('create-once', session.terms.absent, what, write, before, await session.read(key));
}

/** Replaces with a bogus etag, the right one, and one that has become stale; and reads after each write. */
export async function checkReplace(session: ProbeSession): Promise<ProbeCheck[]> {
  const { match } = session.terms;
  const checks: ProbeCheck[] = [];
  const lateReads: string[] = [];
  const { key, etag: first } = await established(session);
  const readAfter = async (what: string, body: string, etag: string) => {
    const object = await session.read(key);
    if (object?.body !== body) lateReads.push(`a read after ${what} did not give its content`);
    else if (object.etag !== etag) lateReads.push(`a read after ${what} gave another etag than the write`);
    return object;
  };

  const created = await readAfter('a create', FIRST, first);
  const bogus = await session.replace(key, bodyOf('bogus'), otherEtag(first));
  const object = await session.read(key);
  checks.push(refusal('replace-bogus', match, 'a replace with a wrong etag', bogus, created, object));

  const second = bodyOf('second');
  const right = await session.replaceSurely(key, second, object?.etag ?? first);
  if (right.status === 'written') {
    checks.push(
      right.etag === object?.etag
        ? checked(
            'replace',
            'fault',
            'the etag did not change with the content: a stale one cannot be recognized',
          )
        : checked('replace', 'ok'),
    );
    const before = await readAfter('a replace', second, right.etag);
    if (right.etag !== first) {
      const write = await session.replace(key, bodyOf('stale'), first);
      const after = await session.read(key);
      checks.push(refusal('replace-stale', match, 'a replace with a stale etag', write, before, after));
    }
  } else {
    const bare = object?.etag.replace(/^"(.*)"$/, '$1') ?? '';
    const isQuoted = bare !== '' && bare !== object?.etag;
    const takesBare = isQuoted && (await session.replaceSurely(key, second, bare)).status === 'written';
    const how = takesBare
      ? ', in quotes as the store itself gave it; without them it is taken (as by Ceph RGW before version 20: update it)'
      : ' as if it were a wrong one';
    const why = right.status === 'rejected' ? `: ${right.error.message}` : how;
    checks.push(checked('replace', 'fault', `misunderstands ${match}: the right etag was refused${why}`));
  }
  checks.push(checked('read-back', lateReads.length === 0 ? 'ok' : 'fault', lateReads.join('; ')));
  return checks;
}

/** A replace of an object that is not there. */
export async function checkReplaceAbsent(session: ProbeSession, etag: string): Promise<ProbeCheck> {
  const key = session.newKey();
  const write = await session.replace(key, bodyOf('absent'), etag);
  const what = 'a replace of an object that is absent';
  const { match } = session.terms;
  return refusal('replace-absent', match, what, write, undefined, await session.read(key));
}

/** Judges a write that had to be refused and had to change nothing. */
function refusal(
  id: ProbeCheckId,
  header: string,
  what: string,
  write: ProbedWrite,
  before: StoredObject | undefined,
  after: StoredObject | undefined,
): ProbeCheck {
  const changed = before?.body !== after?.body || before?.etag !== after?.etag;
  const fault = (detail: string) => checked(id, 'fault', detail);
  if (write.status === 'written') return fault(`ignores ${header}: ${what} was accepted`);
  if (write.status === 'conflict')
    return changed ? fault(`${header} was refused, but the object changed all the same`) : checked(id, 'ok');
  const { message } = write.error;
  if (write.status === 'rejected')
    return fault(`answers ${header} with an error instead of a refusal: ${message}`);
  if (changed) return fault(`ignores ${header}: ${what} was applied, under an error: ${message}`);
  const detail = 'nothing was changed, but the store failed where it should have refused';
  return checked(id, 'warning', `${detail}: ${message}`);
}

/** A further object, of a store that has created one. */
async function established(session: ProbeSession): Promise<WrittenObject> {
  const written = await session.establish(FIRST);
  if (written.status === 'written') return written;
  if (written.status === 'rejected') throw written.error;
  const message = `${session.store.url}: refuses to create keys that had never been used`;
  throw new StoreError(message, { fault: 'rejected', outcome: 'not-applied' });
}

/** Of the same shape as a real one: servers refuse misshapen ones for another reason. */
export function otherEtag(etag: string): string {
  const base = /^\d+$/.test(etag) ? 10 : 16;
  const other = etag.replace(/[0-9a-f]/g, (digit) =>
    ((Number.parseInt(digit, base) + 7) % base).toString(base),
  );
  return other === etag ? `${etag}0` : other;
}

/** How many races there are, and among how many writers each. */
interface Races {
  readonly writers: number;
  /** Each has one race of creates and one of replaces. */
  readonly rounds: number;
}

/** How many races are under way at once: a store that is far away is to be probed in less time. */
const LANES = 2;

type Kind = 'create' | 'replace';

/** The outcome of each write, and the object when all writers had their answers. */
interface Race {
  readonly writes: readonly ProbedWrite[];
  readonly object: StoredObject | undefined;
}

/**
 * Several writers create one key at once, and then replace its object at once, all with its etag; in each
 * round another key. The reads that judge a race keep a connection open for each writer of the next one:
 * requests that wait for a connection are no race.
 */
export async function checkRaces(
  session: ProbeSession,
  first: WrittenObject,
  { writers, rounds }: Races,
): Promise<ProbeCheck> {
  const creates: Race[] = [];
  const replaces: Race[] = [];
  const readByAll = async (key: string) => (await atOnce(writers, () => session.read(key)))[0];
  await atOnce(LANES * writers, () => session.read(first.key));
  await atOnce(LANES, async (lane) => {
    for (let round = lane; round < rounds; round += LANES) {
      const key = session.newKey();
      const created = await atOnce(writers, (writer) => session.create(key, bodyOf(`create ${writer}`)));
      const object = await readByAll(key);
      creates.push({ writes: created, object });
      if (object === undefined) continue;
      const replaced = await atOnce(writers, (writer) =>
        session.replace(key, bodyOf(`replace ${writer}`), object.etag),
      );
      replaces.push({ writes: replaced, object: await readByAll(key) });
    }
  });
  const weakness = weaknessOf(creates) ?? weaknessOf(replaces);
  const { absent, match } = session.terms;
  const faults = [faultOf(absent, 'create', creates), faultOf(match, 'replace', replaces)];
  const fault = faults.filter((each) => each !== undefined).join('; ');
  if (fault !== '') return checked('races', 'fault', fault);
  return weakness === undefined
    ? checked('races', 'ok', `${2 * rounds} races, none lost`)
    : checked('races', 'warning', weakness);
}

/** Why leases are not safe with this condition, or cannot work. */
function faultOf(header: string, kind: Kind, races: readonly Race[]): string | undefined {
  const losses = races.flatMap((race) => lossOf(race, kind) ?? []);
  if (losses.length > 0) {
    return `${header} is not atomic: ${losses.length} of ${races.length} races were lost, the first one since ${losses[0]}`;
  }
  const rejected = races.flatMap(({ writes }) => writes).find(({ status }) => status === 'rejected');
  if (rejected?.status === 'rejected')
    return `answers a losing writer with an error: ${rejected.error.message}`;
  const isWon = ({ writes, object }: Race) =>
    writes.some((_, writer) => object?.body === bodyOf(`${kind} ${writer}`));
  if (races.length === 0 || races.some(isWon)) return undefined;
  const weakness = weaknessOf(races);
  return `no writer won in any of ${races.length} races of ${header}${weakness === undefined ? '' : ` (${weakness})`}`;
}

/** What is wrong, though harmless, in the first race that shows something. */
function weaknessOf(races: readonly Race[]): string | undefined {
  for (const { writes } of races) {
    const unsure = writes.flatMap((write) => (write.status === 'unsure' ? [write.error.message] : []));
    if (unsure.length > 0) {
      return `${unsure.length} of ${writes.length} racing writers got a server error instead of a refusal: ${unsure[0]}`;
    }
  }
  return undefined;
}

/**
 * Why a race was lost: what no sound store shows. A write that was refused and yet applied is no loss: it may
 * have been sent twice.
 */
function lossOf({ writes, object }: Race, kind: Kind): string | undefined {
  const winners = writes.flatMap((write, writer) => (write.status === 'written' ? [writer] : []));
  const [winner] = winners;
  if (winners.length > 1) return `${winners.length} of ${writes.length} concurrent writes were accepted`;
  if (winner === undefined || object?.body === bodyOf(`${kind} ${winner}`)) return undefined;
  return 'the write that was accepted was overwritten by one that was not';
}

/** All of them, to the end, even when one fails: no write may be under way when the result is read. */
async function atOnce<T>(writers: number, call: (writer: number) => Promise<T>): Promise<T[]> {
  const calls = Array.from({ length: writers }, (_, writer) => call(writer));
  await Promise.allSettled(calls);
  return Promise.all(calls);
}

function bodyOf(writer: string): string {
  return JSON.stringify({ probe: writer });
}

const FIRST = bodyOf('first');
