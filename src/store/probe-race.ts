import type { StoredObject } from './lease-store.js';
import { type ConditionTerms, checked, type ProbeCheck, type ProbeCheckId } from './probe-report.js';
import type { ProbedWrite, ProbeSession } from './probe-session.js';

/** One race may by chance hide a gap between looking and writing. */
const ROUNDS = 3;

/** Several writers create one key at once, in a few rounds. */
export async function checkCreateRace(
  session: ProbeSession,
  newKey: () => string,
  writers: number,
  terms: ConditionTerms,
): Promise<ProbeCheck> {
  return races('create-race', `${terms.absent} is not atomic`, async () => {
    const key = newKey();
    const writes = await atOnce(writers, (writer) => session.create(key, bodyOf(writer)));
    return { writes, object: await session.read(key) };
  });
}

/** Several writers replace one object at once, all with its etag, in a few rounds. */
export async function checkReplaceRace(
  session: ProbeSession,
  newKey: () => string,
  writers: number,
  terms: ConditionTerms,
): Promise<ProbeCheck> {
  return races('replace-race', `${terms.match} is not atomic`, async () => {
    const key = newKey();
    const start = await session.create(key, bodyOf('nobody'));
    if (start.status === 'unsure' || start.status === 'rejected') throw start.error;
    const etag = start.status === 'written' ? start.etag : '';
    const writes = await atOnce(writers, (writer) => session.replace(key, bodyOf(writer), etag));
    return { writes, object: await session.read(key) };
  });
}

interface Race {
  readonly writes: readonly ProbedWrite[];
  /** As it was when all writers had their answers. */
  readonly object: StoredObject | undefined;
}

async function races(id: ProbeCheckId, brokenly: string, run: () => Promise<Race>): Promise<ProbeCheck> {
  let weak: ProbeCheck | undefined;
  let won = false;
  for (let round = 0; round < ROUNDS; round++) {
    const race = await run();
    const fault = faultOf(race);
    if (fault !== undefined) return checked(id, 'fault', fault.broken ? `${brokenly}: ${fault.detail}` : fault.detail);
    won ||= race.writes.some((_, writer) => race.object?.body === bodyOf(writer));
    weak ??= weaknessOf(id, race.writes);
  }
  if (!won) return checked(id, 'fault', `no writer won in any of ${ROUNDS} races${weak === undefined ? '' : ` (${weak.detail})`}`);
  return weak ?? checked(id, 'ok');
}

function faultOf({ writes, object }: Race): { readonly detail: string; readonly broken: boolean } | undefined {
  const winners = writes.flatMap((write, writer) => (write.status === 'written' ? [writer] : []));
  const [winner] = winners;
  if (winners.length > 1) return { broken: true, detail: `${winners.length} of ${writes.length} concurrent writes were accepted` };
  if (winner !== undefined && object?.body !== bodyOf(winner)) {
    return { broken: true, detail: 'the write that was accepted was overwritten by one that was not' };
  }
  const refused = writes.findIndex((write, writer) => write.status === 'conflict' && object?.body === bodyOf(writer));
  if (refused >= 0) return { broken: true, detail: 'a write that was refused was applied all the same' };
  for (const write of writes) {
    if (write.status === 'rejected') return { broken: false, detail: `answers a losing writer with an error: ${write.error.message}` };
  }
  return undefined;
}

function weaknessOf(id: ProbeCheckId, writes: readonly ProbedWrite[]): ProbeCheck | undefined {
  const unsure = writes.flatMap((write) => (write.status === 'unsure' ? [write.error.message] : []));
  if (unsure.length === 0) return undefined;
  return checked(
    id,
    'warning',
    `${unsure.length} of ${writes.length} racing writers got a server error instead of a refusal: ${unsure[0]}`,
  );
}

/** All of them, to the end, even when one fails: nobody may still be writing when the result is looked at. */
async function atOnce(writers: number, write: (writer: number) => Promise<ProbedWrite>): Promise<ProbedWrite[]> {
  const results = await Promise.allSettled(Array.from({ length: writers }, (_, writer) => write(writer)));
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}

function bodyOf(writer: number | string): string {
  return JSON.stringify({ probe: writer });
}
