import type { ProbeStatus } from '../../store/probe/probe-report.js';

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
