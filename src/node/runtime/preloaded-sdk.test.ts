import { describe, expect, it } from 'vitest';
import { mayHaveSdk } from './preloaded-sdk.js';

describe('whether an SDK can be there', () => {
  it.each<[string[], string | undefined]>([
    [['--import', './otel.mjs'], undefined],
    [['--import=./otel.mjs'], undefined],
    [['-r', './otel.cjs'], ''],
    [['--inspect', '--require=./otel.cjs'], ''],
    [[], '--import ./otel.mjs'],
    [[], '--max-old-space-size=64 --require ./otel.cjs'],
    [[], '-r ./otel.cjs'],
  ])('is shown by the flags that load modules first: %j %s', (execArgv, nodeOptions) => {
    expect(mayHaveSdk(execArgv, nodeOptions)).toBe(true);
  });

  it.each<[string[], string | undefined]>([
    [[], undefined],
    [['--max-old-space-size=64'], '--enable-source-maps'],
    [['--report-on-signal'], '--redirect-warnings=a-r'],
  ])('is not so with others: %j %s', (execArgv, nodeOptions) => {
    expect(mayHaveSdk(execArgv, nodeOptions)).toBe(false);
  });
});
