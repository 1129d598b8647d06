import { NodeLeaseError } from '../../../core/base/errors.js';
import type { ProbeStatus } from '../../../core/store/probe/probe-report.js';

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

/** @param title what was examined. @default the id, in words */
export function finding(
  id: string,
  status: ProbeStatus,
  detail: string,
  title = id.replace(/^zookeeper-/, '').replaceAll('-', ' '),
): Finding {
  return { id, title, status, detail };
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
