import { ConfigError } from '../../core/base/errors.js';
import { hostName } from '../../core/base/host/facts.js';
import type { AcquireOptions } from '../../node/runtime/acquire.js';

/**
 * The options of `acquire()` from the variables of the command line, such as `NODELEASE_STORE`, with its
 * checks. Variables that have no such option, such as `NODELEASE_HTTP`, are left out. For an unknown one the
 * process emits a warning.
 *
 * ```ts
 * await using lease = await acquire(await optionsFromEnvironment());
 * ```
 *
 * @throws {ConfigError} that names the variable
 */
export async function optionsFromEnvironment(): Promise<AcquireOptions> {
  // Loaded only here: a start must be fast.
  const { readSettings, unknownVariables } = await import('./settings.js');
  const { SETTINGS } = await import('./settings-table.js');
  const env = process.env;
  for (const problem of unknownVariables(env)) process.emitWarning(problem, { code: 'NODELEASE_VARIABLE' });
  const { nodeId, ...settings } = readSettings({ flags: {}, env, hostname: hostName() });
  if (nodeId !== undefined)
    throw new ConfigError(
      'NODELEASE_NODE_ID',
      nodeId,
      'no fixed node id: staticLease() has one, without a lease',
    );
  const names = SETTINGS.map(({ option }) => option?.split('.')[0]);
  const { provider, store, zookeeper } = settings;
  const { check: _, ...announced } = zookeeper ?? {};
  return {
    ...Object.fromEntries(Object.entries(settings).filter(([name]) => names.includes(name))),
    // As on the command line, a variable may be set for tasks that have no key.
    stickyWaitMs: settings.sticky === undefined ? undefined : settings.stickyWaitMs,
    // The default is that of acquire(), which is none in a container.
    store: env.NODELEASE_STORE && provider === 'store' ? store : undefined,
    zookeeper: zookeeper && { ...announced, connect: zookeeper.connect.text },
  };
}
