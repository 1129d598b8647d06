/**
 * Whether this run is the trimmed deep tier, which shows each kind of proof once and is what `.ci/run` has
 * time for. `npm run test:deep:trimmed` sets the variable.
 */
export const isTrimmed: boolean = process.env.NODELEASE_TEST_DEEP === 'trimmed';
