import { expect } from 'vitest';
import type { FleetStore } from '../../../support/fleet.js';
import { type ProcessOptions, runCli, type TestProcess } from '../../../support/processes.js';

/** Starts `nodelease id` on that store. */
export function startId(
  store: FleetStore,
  args: readonly string[],
  { env }: ProcessOptions = {},
): TestProcess {
  return runCli(['id', ...args, ...store.options], { env: { ...store.env, ...env } });
}

/** The ids of a call that ends well and says nothing else. */
export async function idsOf(process: TestProcess): Promise<bigint[]> {
  const end = await process.exit;
  expect({ ...end, stderr: process.stderr() }).toEqual({ code: 0, signal: null, stderr: '' });
  return printed(process);
}

/** The ids that it has printed so far. */
export function printed(process: TestProcess): bigint[] {
  return process.stdout().split('\n').slice(0, -1).map(BigInt);
}

export function expectIncreasing(ids: readonly bigint[]): void {
  expect(ids.findIndex((id, i) => i > 0 && id <= (ids[i - 1] as bigint))).toBe(-1);
}
