import { npmBuild } from './npm-build.js';

/** Compiles the programs that tests run in processes of their own; see `harnessFile`. */
export default async function setup(): Promise<void> {
  await npmBuild('build:harness');
}
