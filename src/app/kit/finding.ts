import { explain, NodeLeaseError } from '../../core/base/errors.js';
import type { Interval } from '../../core/store/lease-store.js';
import type { ProbeStatus } from '../../core/store/probe/probe-report.js';
import { formatDuration, formatSetting } from './terminal/text.js';

/** A smaller offset between the clocks counts as none, in milliseconds. */
const NOTEWORTHY_OFFSET_MS = 1_000;
/** AWS refuses signed requests whose time is off by more than this, in milliseconds. */
const SIGNATURE_LIMIT_MS = 15 * 60_000;

/** One line of what `doctor` found. */
export interface Finding {
  readonly id: string;
  /** What was examined. */
  readonly title: string;
  /** `fault`: no leases can, or should, be kept there. `warning`: an operator should look into it. */
  readonly status: ProbeStatus;
  /** May be empty. */
  readonly detail: string;
}

/** What was found of what a product keeps in a store next to the leases. */
export interface PartReport {
  /** Its id is the name of the report in the JSON of a command. */
  readonly finding: Finding;
  readonly report: object;
}

/** @param title what was examined. @default the id, in words */
export function finding(
  id: string,
  status: ProbeStatus,
  detail: string,
  title = id.replace(/^zookeeper-/, '').replaceAll('-', ' '),
): Finding {
  return { id, title, status, detail };
}

/** The fault that a failure is. @throws as {@link failureOf} */
export function faultOf(id: string, error: unknown, signal?: AbortSignal): Finding {
  const { code } = failureOf(error, signal);
  return finding(id, 'fault', `${explain(error)} [${code}]`);
}

/** Whether no finding is a fault. */
export function isSound(findings: readonly Finding[]): boolean {
  return findings.every(({ status }) => status !== 'fault');
}

/** A failure that is a finding. @throws `signal.reason` when that has aborted, and other errors as they are */
export function failureOf(error: unknown, signal?: AbortSignal): NodeLeaseError {
  signal?.throwIfAborted();
  if (!(error instanceof NodeLeaseError)) throw error;
  return error;
}

/** Whether a store shows its time. */
export const isTime = ({ min, max }: Interval) => Number.isFinite(min) && Number.isFinite(max);

/** How the store's clock and this host's compare. No lease depends on that; signatures of AWS do. */
export function clockFinding({ min, max }: Interval, signs = true): Finding {
  if (!isTime({ min, max })) return finding('clock', 'ok', 'shows no time');
  const offset = min > 0 ? min : max < 0 ? -max : 0;
  if (offset <= NOTEWORTHY_OFFSET_MS) return finding('clock', 'ok', 'agrees with that of this host');
  const harm =
    !signs || offset < SIGNATURE_LIMIT_MS
      ? 'harmless for leases, which do not use that one'
      : `AWS refuses signatures that are ${formatSetting(SIGNATURE_LIMIT_MS)} off: the first request is made twice, and temporary credentials may be renewed too late`;
  return finding(
    'clock',
    'warning',
    `at least ${formatDuration(offset)} ${min > 0 ? 'ahead of' : 'behind'} that of this host (${harm})`,
  );
}
