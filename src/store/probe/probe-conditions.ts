import { type StoredObject, StoreError } from '../lease-store.js';
import { type ConditionTerms, checked, type ProbeCheck, type ProbeCheckId } from './probe-report.js';
import type { ProbedWrite, ProbeSession, WrittenObject } from './probe-session.js';

/** Creates the object that the checks of listing and age look at; undefined when the store does not let it be created. */
export async function checkCreate(
  session: ProbeSession,
  terms: ConditionTerms,
): Promise<{ readonly check: ProbeCheck; readonly object?: WrittenObject }> {
  const written = await session.establish(bodyOf('first'));
  if (!('status' in written)) return { check: checked('create', 'ok'), object: written };
  // Whatever else a store has to say is not about the condition: another region, a key that encrypts.
  if (written.status === 'rejected' && written.error.fault !== 'unsupported') throw written.error;
  const why =
    written.status === 'rejected'
      ? `does not accept ${terms.absent}: ${written.error.message}`
      : `misunderstands ${terms.absent}: refused to create keys that had never been used`;
  return { check: checked('create', 'fault', why) };
}

/** A second create of one key. */
export async function checkCreateOnce(session: ProbeSession, terms: ConditionTerms): Promise<ProbeCheck> {
  const { key } = await established(session);
  const before = await session.read(key);
  const write = await session.create(key, bodyOf('second'));
  const ignored = `ignores ${terms.absent}: a second create of the same key was accepted`;
  return refusal('create-once', write, before, await session.read(key), terms.absent, ignored);
}

/** Replaces with a bogus etag, the right one, and one that has become stale; and reads after each write. */
export async function checkReplace(session: ProbeSession, terms: ConditionTerms): Promise<ProbeCheck[]> {
  const checks: ProbeCheck[] = [];
  const lateReads: string[] = [];
  const lookFor = (object: StoredObject | undefined, body: string, etag: string, write: string) => {
    if (object?.body !== body) lateReads.push(`a read after ${write} did not give its content`);
    else if (object.etag !== etag) lateReads.push(`a read after ${write} gave another etag than the write`);
    return object;
  };

  const { key, etag: first } = await established(session);
  let current = lookFor(await session.read(key), bodyOf('first'), first, 'a create');

  const bogus = await session.replace(key, bodyOf('bogus'), otherEtag(first));
  const afterBogus = await session.read(key);
  checks.push(
    refusal('replace-bogus', bogus, current, afterBogus, terms.match, `ignores ${terms.match}: a replace with a wrong etag was accepted`),
  );
  current = afterBogus;

  const right = await session.replaceSurely(key, bodyOf('second'), current?.etag ?? first);
  if (right.status === 'written') {
    if (right.etag === current?.etag)
      checks.push(checked('replace', 'fault', 'the etag did not change with the content: a stale one cannot be told'));
    else checks.push(checked('replace', 'ok'));
    current = lookFor(await session.read(key), bodyOf('second'), right.etag, 'a replace');
  } else {
    const bare = current?.etag.replace(/^"(.*)"$/, '$1') ?? '';
    const isQuoted = bare !== '' && bare !== current?.etag;
    const takesBare = isQuoted && (await session.replaceSurely(key, bodyOf('second'), bare)).status === 'written';
    const how = takesBare
      ? ', in quotes as the store itself gave it; without them it is taken (as by Ceph RGW before version 20: update it)'
      : ' as if it were a wrong one';
    const why = right.status === 'rejected' ? `: ${right.error.message}` : how;
    checks.push(checked('replace', 'fault', `misunderstands ${terms.match}: the right etag was refused${why}`));
  }

  if (right.status === 'written' && right.etag !== first) {
    const stale = await session.replace(key, bodyOf('stale'), first);
    const ignored = `ignores ${terms.match}: a replace with a stale etag was accepted`;
    checks.push(refusal('replace-stale', stale, current, await session.read(key), terms.match, ignored));
  }
  checks.push(lateReads.length === 0 ? checked('read-back', 'ok') : checked('read-back', 'fault', lateReads.join('; ')));
  return checks;
}

/** A replace of an object that is not there. */
export async function checkReplaceAbsent(session: ProbeSession, etag: string, terms: ConditionTerms): Promise<ProbeCheck> {
  const key = session.newKey();
  const write = await session.replace(key, bodyOf('absent'), etag);
  const ignored = `ignores ${terms.match}: a replace of an object that is absent was accepted`;
  return refusal('replace-absent', write, undefined, await session.read(key), terms.match, ignored);
}

/** Judges a write that had to be refused and had to change nothing. */
function refusal(
  id: ProbeCheckId,
  write: ProbedWrite,
  before: StoredObject | undefined,
  after: StoredObject | undefined,
  header: string,
  ignored: string,
): ProbeCheck {
  const changed = before?.body !== after?.body || before?.etag !== after?.etag;
  switch (write.status) {
    case 'written':
      return checked(id, 'fault', ignored);
    case 'conflict':
      return changed ? checked(id, 'fault', `${header} was refused, but the object changed all the same`) : checked(id, 'ok');
    case 'unsure':
      return changed
        ? checked(id, 'fault', `${ignored.replace(/ accepted$/, ' applied')}, under an error: ${write.error.message}`)
        : checked(id, 'warning', `nothing was changed, but the store failed where it should have refused: ${write.error.message}`);
    case 'rejected':
      return checked(id, 'fault', `answers ${header} with an error instead of a refusal: ${write.error.message}`);
  }
}

/** A further object, of a store that has created one. */
async function established(session: ProbeSession): Promise<WrittenObject> {
  const written = await session.establish(bodyOf('first'));
  if (!('status' in written)) return written;
  if (written.status === 'rejected') throw written.error;
  const message = `${session.store.url}: refuses to create keys that had never been used`;
  throw new StoreError(message, { fault: 'rejected', outcome: 'not-applied' });
}

/** Of the same shape as a real one: servers refuse misshapen ones for another reason. */
function otherEtag(etag: string): string {
  const other = etag.replace(/[0-9a-f]/g, (digit) => ((Number.parseInt(digit, 16) + 7) % 16).toString(16));
  return other === etag ? `${etag}0` : other;
}

function bodyOf(writer: string): string {
  return JSON.stringify({ probe: writer });
}
