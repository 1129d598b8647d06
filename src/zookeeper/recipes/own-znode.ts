import { randomUuid } from '../../core/base/clock.js';
import type { BoundSession } from '../client/bound-session.js';
import { erase, whileConnectionIsAway } from '../client/retry.js';
import { parentOf } from '../client/znode-path.js';
import { type CallOptions, ignoring, isFault, isUnknown } from '../client/zookeeper.js';
import type { Recipe } from './recipe.js';

// A contender's own znode is never half made: where the reply to its creation is lost, it is found by its
// protection prefix; where it is given up, it is deleted until that is certain. Source: the protection of
// Apache Curator's creates.

/** The path of a new znode before the servers number it: `_c_<UUID v4>-`, and the recipe's name for it. */
export function protectedPath({ path, random }: Recipe, name: string): string {
  return `${path}/_c_${randomUuid(random)}-${name}`;
}

/**
 * The own znode, its number included, and the content of its folder right after it was made, where that is
 * known.
 */
export interface OwnZnode {
  readonly path: string;
  readonly token?: bigint | undefined;
  readonly names?: readonly string[] | undefined;
}

/**
 * Makes the znode, an ephemeral sequential one, once.
 *
 * @throws as {@link BoundSession.createWithParents} does, and `signal.reason`. The znode may exist
 * then: {@link discard} it
 */
export function createOwn(
  recipe: Recipe,
  session: BoundSession,
  protectedTo: string,
  signal: AbortSignal | undefined,
): Promise<OwnZnode> {
  const parent = parentOf(protectedTo);
  let mayStand = false;
  const make = async (call: CallOptions) => {
    const made = mayStand ? await findOwn(session, protectedTo, call.signal) : undefined;
    if (made !== undefined) return { path: made };
    for (;;) {
      // Sent together: a session's reads come after its writes.
      const creating = session.createWithZxid(protectedTo, recipe.data, 'ephemeral-sequential', call);
      const names = session.children(parent, call).catch(() => undefined);
      try {
        const { path, createdZxid: token } = await creating;
        return { path, token, names: await names };
      } catch (error) {
        mayStand = isUnknown(error);
        if (!isFault(error, 'no-node')) throw error;
      }
      await session.ensurePath(parent, call);
    }
  };
  return whileConnectionIsAway({ ...recipe, signal }, session)(make);
}

/** The path of the znode, undefined where it does not exist, and never will. */
async function findOwn(
  session: BoundSession,
  protectedTo: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const parent = parentOf(protectedTo);
  // A server may lag behind what it did for this session over another connection, until it has answered a
  // write.
  const reading = Promise.all([
    session.multi([{ type: 'check', path: parent }], { signal }),
    session.children(parent, { signal }),
  ]);
  const [, names] = (await reading.catch(ignoring('no-node'))) ?? [];
  const name = names?.find((child) => `${parent}/${child}`.startsWith(protectedTo));
  return name && `${parent}/${name}`;
}

/** Deletes what {@link createOwn} may have made. Never rejects. */
export async function discard(recipe: Recipe, session: BoundSession, protectedTo: string): Promise<void> {
  const finding = whileConnectionIsAway(recipe, session)(() => findOwn(session, protectedTo));
  const path = await finding.catch(() => undefined);
  if (path !== undefined) await erase(recipe, session, path);
}
