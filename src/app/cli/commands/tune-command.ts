import { ConfigError } from '../../../core/base/errors.js';
import { tuneCluster } from '../../../core/lease/operate/tune.js';
import { locksUrl, nothingAt } from '../../../core/store/lock-url.js';
import { checkLockName } from '../../../node/locks/lock-place.js';
import { answer, fail } from '../../kit/answer.js';
import { type Call, onStore } from '../../kit/call.js';
import { UsageError } from '../../kit/io.js';
import { formatSetting, timesText } from '../../kit/terminal/text.js';
import { wantedGrace } from '../../settings/settings.js';
import { lateText } from '../status/status-table.js';

/** The options of `tune`, in milliseconds. */
interface TuneCommandOptions {
  readonly duration?: number;
  readonly grace?: number;
  /** The lock whose times are meant, instead of the cluster's. */
  readonly lock?: string;
}

/** `nodelease tune --duration D`: gives a cluster with running tasks another duration and grace. */
export function tuneCommand(call: Call<TuneCommandOptions>): Promise<number> {
  const { options, settings, io } = call;
  const { duration: durationMs, grace: graceMs, lock } = options;
  if (durationMs === undefined) throw new UsageError('no duration given: expected --duration 60s');
  const wanted = wantedGrace(durationMs, graceMs);
  if (wanted) throw new ConfigError('grace', formatSetting(graceMs ?? 0), wanted);
  if (lock !== undefined) checkLockName(lock);
  const store = lock === undefined ? settings.store : locksUrl(settings.store, lock);
  return onStore({ ...call, settings: { ...settings, store } }, async (session) => {
    const outcome = await tuneCluster({ ...io, session, durationMs, graceMs }).catch((error) => {
      // In the words of the command line.
      if (!(error instanceof ConfigError)) throw error;
      throw new ConfigError('duration', formatSetting(durationMs), error.expected);
    });
    const { url } = session.store;
    if (outcome.kind === 'no-cluster') return fail(io, 'CLUSTER_MISSING', nothingAt(url));
    const times = `${url} has ${timesText(outcome.to)}`;
    if (outcome.kind === 'superseded')
      return fail(io, 'CLUSTER_CHANGED', `${times}: another command has set them meanwhile, and they apply`);
    const { from, to, late } = outcome;
    const had = from === to ? 'already' : `now, and had ${timesText(from)}`;
    return answer(call, {
      report: { store: url, from, to, late },
      lines: [`${times} ${had}`, late.length > 0 ? lateText(late) : 'every holder has followed'],
    });
  });
}
