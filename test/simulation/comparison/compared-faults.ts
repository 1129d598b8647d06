import {
  type Conditions,
  FAULT_KINDS,
  type FaultKind,
  NETWORK_FAULTS,
  PLANNED_FAULTS,
  type STANDING_FAULTS,
} from '../world/conditions.js';

/**
 * One row of the comparison: what goes wrong in its seeds. Tasks that come and go are no fault, and are part
 * of every row.
 */
export interface ComparedFaults {
  readonly name: string;
  /** Faults of these kinds and no others. */
  readonly only: readonly FaultKind[];
  /** Seeds without this one would show nothing and are passed over; none are when undefined. */
  readonly needed: FaultKind | undefined;
}

const CLOCKS: readonly FaultKind[] = ['clock-offset', 'clock-drift', 'clock-step'];

/** Every kind of fault alone, and then together. */
export const COMPARED_FAULTS: readonly ComparedFaults[] = [
  { name: 'none: tasks come and go', only: ['release'], needed: 'release' },
  ...FAULT_KINDS.filter((kind) => kind !== 'release').map((kind) => ({
    name: kind,
    only: [kind, 'release'] as const,
    needed: kind,
  })),
  {
    name: 'all, but hosts with right clocks',
    only: FAULT_KINDS.filter((kind) => !CLOCKS.includes(kind)),
    needed: undefined,
  },
  { name: 'all', only: FAULT_KINDS, needed: undefined },
];

/** Whether a seed has faults of this kind in it. */
export function isDrawn(kind: FaultKind, conditions: Conditions): boolean {
  if (isOneOf(NETWORK_FAULTS, kind)) return conditions.rates[kind] > 0;
  if (isOneOf(PLANNED_FAULTS, kind)) return conditions.plan.some((fault) => fault.kind === kind);
  return STANDING[kind](conditions);
}

const STANDING: Readonly<Record<(typeof STANDING_FAULTS)[number], (conditions: Conditions) => boolean>> = {
  'clock-offset': ({ hosts }) => hosts.some(({ wallOffset }) => wallOffset !== 0),
  'clock-drift': ({ hosts }) => hosts.some(({ wallDrift }) => wallDrift !== 0),
  'store-skew': ({ storeOffsets }) => storeOffsets.some((offset) => offset !== 0),
  'settings-differ': ({ hosts, ids, durationMs, graceMs }) =>
    hosts.some(
      ({ wanted }) => wanted.nodes !== ids || wanted.durationMs !== durationMs || wanted.graceMs !== graceMs,
    ),
  'same-task-id': ({ sameTaskId }) => sameTaskId,
  release: ({ releases }) => releases,
};

function isOneOf<Kind extends FaultKind>(kinds: readonly Kind[], kind: FaultKind): kind is Kind {
  return (kinds as readonly FaultKind[]).includes(kind);
}
