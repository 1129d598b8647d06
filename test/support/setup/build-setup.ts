import { npmBuild } from './npm-build.js';
import { oncePerRun } from './once-per-run.js';

/** Builds `dist/` once for the whole run: some tests run the command as its users do. */
export default async function setup(): Promise<() => Promise<void>> {
  const { giveUp } = await oncePerRun('build', async () => {
    await npmBuild('build');
    return { value: undefined, tearDown: async () => {} };
  });
  return giveUp;
}
