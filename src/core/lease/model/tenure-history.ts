/** How a tenure ended; `retired`: it was taken from its holder, since the cluster gives the id up. */
export type TenureEnd = 'released' | 'expired' | 'evicted' | 'retired';

/** A tenure that is over. Times are store time, in milliseconds since the Unix epoch. */
export interface PastTenure {
  readonly version: number;
  /** Of more than 40 characters the first and the last ones, with `..` between. */
  readonly taskId: string;
  readonly acquiredAt: number;
  readonly endedAt: number;
  readonly end: TenureEnd;
}

/**
 * The last tenures of an id, the newest first, as lease objects carry them in their metadata: one word each,
 * `version/acquiredAt/endedAt/end/taskId`, numbers in base 36. A hint for people.
 */
export type TenureHistory = string;

/** How many tenures are kept, and in how many characters: stores limit the metadata of an object. */
const KEPT = { tenures: 8, characters: 1_000 } as const;
const TASK_CHARACTERS = 40;
const LETTERS: Readonly<Record<TenureEnd, string>> = {
  released: 'r',
  expired: 'x',
  evicted: 'e',
  retired: 't',
};
/** A longer time is no date. */
const WORD = /^([\da-z]{1,11})\/([\da-z]{1,10})\/([\da-z]{1,10})\/([rxet])\/(.+)/;

/** A tenure that has not ended, and those before. */
interface OpenTenure extends Pick<PastTenure, 'version' | 'taskId' | 'acquiredAt'> {
  readonly history?: TenureHistory | undefined;
}

/** The history with a tenure that is over. */
export function withPast(
  { version, acquiredAt, taskId, history = '' }: OpenTenure,
  end: TenureEnd,
  endedAt: number,
): TenureHistory {
  const numbers = [version, acquiredAt, Math.max(acquiredAt, Math.floor(endedAt))];
  const word = [...numbers.map((number) => number.toString(36)), LETTERS[end], shortened(taskId)].join('/');
  const words = [word, ...history.split(' ')].slice(0, KEPT.tenures);
  while (words.join(' ').length > KEPT.characters) words.pop();
  return words.join(' ').trim();
}

/** The tenures of a history; what is no tenure is left out. */
export function pastTenures(history: TenureHistory | undefined): PastTenure[] {
  return (history?.split(' ') ?? []).flatMap((word) => {
    const [, version, acquiredAt, endedAt, letter, taskId] = WORD.exec(word) ?? [];
    const end = (Object.keys(LETTERS) as TenureEnd[]).find((each) => LETTERS[each] === letter);
    if (end === undefined) return [];
    const [first, begun, ended] = [version, acquiredAt, endedAt].map((text) =>
      Number.parseInt(text as string, 36),
    );
    return [{ version: first, taskId, acquiredAt: begun, endedAt: ended, end } as PastTenure];
  });
}

/** In characters that every store takes for metadata: another program may have written any. */
function shortened(taskId: string): string {
  const half = TASK_CHARACTERS / 2 - 1;
  const text = taskId.replace(/[^!-~]/g, '?');
  return text.length <= TASK_CHARACTERS ? text : `${text.slice(0, half)}..${text.slice(-half)}`;
}
