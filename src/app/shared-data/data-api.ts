import { checked } from '../../core/base/arguments.js';
import type { RandomSource } from '../../core/base/clock.js';
import { ConfigError } from '../../core/base/errors.js';
import type { ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import {
  type EntryEdit,
  type EntryRemoval,
  removeEntry,
  writeEntry,
} from '../../zookeeper/shared-data/edit.js';
import { type SharedData, sharedData } from '../../zookeeper/shared-data/shared-data.js';
import { SharedDataError } from '../../zookeeper/shared-data/shared-data-error.js';
import type { NodeAppPart } from '../http/node-app.js';
import { doneAnswer, HttpProblem, route } from '../http/problem.js';
import { readJson } from '../http/read-json.js';
import { checkWrite, pageAccess } from '../http/server/access.js';

/** Which shared data the console may change. */
export interface DataSource {
  /** The caller closes it. */
  readonly zookeeper: ZooKeeper;
  /** Paths within the chroot, such as `/monastery/root`. */
  readonly roots: readonly string[];
  readonly random: RandomSource;
  /** Whether holders of the token may change it: a token is needed then. @default false */
  readonly allowWrites?: boolean | undefined;
}

/** How long a change may take, the wait for a connection included, in milliseconds. */
const WRITE_TIMEOUT_MS = 5_000;

/**
 * Changes of shared data, each of one entry that the body names: PUT writes or adds one, DELETE removes one.
 * With `ifVersion` only where it is the one that the console has shown.
 */
export function dataWrites(source: DataSource): NodeAppPart {
  const { zookeeper, roots, random, allowWrites } = checked(source);
  return {
    offers: { writesData: allowWrites || undefined },
    mount(app, { clock, token }) {
      const writes = pageAccess(allowWrites, token, 'allowWrites');
      const change = async (
        request: Request,
        act: (shared: SharedData, edit: EntryEdit & EntryRemoval) => Promise<boolean>,
      ) => {
        await checkWrite(writes, request);
        const edit = (await readJson(request)) as
          | (EntryEdit & EntryRemoval & { readonly root?: unknown })
          | null;
        const root = roots.find((each) => each === edit?.root);
        if (!edit || root === undefined)
          throw new ConfigError('root', edit?.root, `one of ${roots.join(', ')}`);
        const shared = sharedData(zookeeper, { root, clock, random });
        try {
          if (await act(shared, edit)) return doneAnswer();
          throw new HttpProblem('not-found', 'the entry has changed or gone meanwhile: nothing was done');
        } catch (error) {
          throw error instanceof SharedDataError ? new HttpProblem('bad-request', error.message) : error;
        } finally {
          await shared.close();
        }
      };
      const call = { timeoutMs: WRITE_TIMEOUT_MS };
      route(app, '/api/data', {
        PUT: ({ req }) => change(req.raw, (shared, edit) => writeEntry(shared, edit, call)),
        DELETE: ({ req }) => change(req.raw, (shared, edit) => removeEntry(shared, edit, call)),
      });
    },
  };
}
