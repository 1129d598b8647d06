/** What is known of a node id's object from the writes that were applied to it. */
export interface ObservedObject {
  readonly version: number;
  readonly nonce: string | undefined;
  readonly held: boolean;
  /**
   * The generation of the cluster in which the id was retired, -1 where the object does not say it; undefined
   * for one that is not retired.
   */
  readonly retiredIn: number | undefined;
  readonly taskId: string | undefined;
  /** The last expiry in store time; undefined for objects without one. */
  readonly timestamp: number | undefined;
  /**
   * How long a holder may trust the content, in milliseconds; undefined for objects that do not say.
   */
  readonly durationMs: number | undefined;
  /** The mark of the last holder's sticky key. */
  readonly sticky?: string | undefined;
  /** The tenures before, as the object says. */
  readonly history?: string | undefined;
}

export const NEVER_HELD: ObservedObject = {
  version: 0,
  nonce: undefined,
  held: false,
  retiredIn: undefined,
  taskId: undefined,
  timestamp: undefined,
  durationMs: undefined,
};

type Fields = Partial<
  Record<'version' | 'timestamp' | 'durationMs' | 'generation', number> &
    Record<'nonce' | 'taskId', string> & { readonly retired: boolean }
>;

/**
 * The simulator's own reading of an object, so that it does not share a mistake with the codec. Undefined for
 * what cannot be read.
 */
export function observed(
  body: string,
  metadata: Readonly<Record<string, string>>,
): ObservedObject | undefined {
  const { sticky, history } = metadata;
  if (body === '') return { ...NEVER_HELD, version: Number(metadata.version ?? 0), sticky, history };
  try {
    const {
      version,
      nonce,
      taskId,
      timestamp,
      durationMs,
      retired,
      generation = -1,
    } = JSON.parse(body) as Fields;
    if (version === undefined) return undefined;
    const held = typeof taskId === 'string';
    const retiredIn = !held && retired === true ? generation : undefined;
    // Other engines' objects may have no mark of their own, and a timestamp that means something else.
    const mark = nonce ?? `${taskId} ${version}`;
    return {
      version,
      nonce: mark,
      taskId,
      held,
      retiredIn,
      durationMs,
      timestamp: held && nonce === undefined ? undefined : timestamp,
      sticky,
      history,
    };
  } catch {
    return undefined;
  }
}

/** An object in the words of the history. */
export function described({ held, retiredIn, taskId, version }: ObservedObject): string {
  if (held) return `held by ${taskId}, version ${version}`;
  return retiredIn === undefined
    ? `free, version ${version}`
    : `retired in generation ${retiredIn}, version ${version}`;
}
