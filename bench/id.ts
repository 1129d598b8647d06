// `npm run bench:id`: what an id costs, what the layouts hold, and who repeats ids. Exits with 1 where a
// promise is not kept.

import { cpus } from 'node:os';
import { baseline, contestants } from './id-contestants.js';
import { sustainedLimits } from './id-limits.js';
import { type Asked, ask, candidates, SLOWED } from './id-repeats.js';
import { type IdSpeed, idSpeeds } from './id-speed.js';
import { grouped, markdownTable } from './markdown.js';

const ROUNDS = { counted: 25, warmUp: 5 };
const ASKED = 200_000;
/** A call that takes so much of a millisecond of the slow clock has waited for the next one. */
const BLOCKED_MS = 0.5;

const print = (text: string) => process.stdout.write(`${text}\n`);

print(`Node ${process.version}, ${cpus()[0]?.model ?? 'an unknown processor'}, ${cpus().length} threads\n`);

const speeds = await idSpeeds(contestants, ROUNDS);
const limits = await sustainedLimits();
const askings = candidates.map((candidate) => ask(candidate, ASKED));

const of = (wanted: unknown) => speeds.find(({ contestant }) => contestant === wanted)?.bestNs ?? Number.NaN;
const [floorNs, nextNs, fillNs] = [of(baseline.floor), of(baseline.next), of(baseline.fill)];

const nanoseconds = (ns: number) => ns.toFixed(ns < 10 ? 2 : 1);
const perSecond = (perMs: number | undefined) => (perMs === undefined ? 'no limit' : grouped(1_000 * perMs));

function outcome({ repeated, refused, longestMs, made, candidate: { perMs } }: Asked): string {
  if (repeated > 0) return '**repeats ids**';
  if (refused > 0) return 'throws';
  if (perMs === undefined) return 'no limit';
  return made > perMs && longestMs > BLOCKED_MS ? 'blocks the thread' : 'goes on';
}

function speedRow({ contestant, bestNs, medianNs }: IdSpeed): string[] {
  const { whose, name, gives, generator, perRound } = contestant;
  const asked = askings.find(({ candidate }) => candidate.name === generator);
  const times = [
    nanoseconds(bestNs),
    nanoseconds(medianNs),
    (bestNs / floorNs).toFixed(2),
    (bestNs / nextNs).toFixed(2),
  ];
  const limit = asked === undefined ? ['', ''] : [perSecond(asked.candidate.perMs), outcome(asked)];
  return [whose === 'ours' ? `**\`${name}\`**` : name, gives, ...times, grouped(perRound), ...limit];
}

print(
  `Nanoseconds an id, within the burst that the layout allows: the best of ${ROUNDS.counted} rounds in turns, and the median.\n`,
);
const speedHead = [
  '',
  'gives',
  'best, ns',
  'median, ns',
  '× the floor',
  '× `next()`',
  'ids a round',
  'sustained, ids a second',
  'asked for more',
];
print(markdownTable(speedHead, speeds.map(speedRow)));

print(
  '\nIds that one node can make of a layout: at once, and for ever (arithmetic on its bits; measured).\n',
);
print(
  markdownTable(
    ['layout', 'burst', 'ids a second', 'measured'],
    limits.map(({ name, burst, perSecond, measured }) => [
      `\`${name}\``,
      grouped(burst),
      grouped(perSecond),
      grouped(measured),
    ]),
  ),
);

print(
  `\nAsked for ${grouped(ASKED)} ids on end, by a clock that goes ${SLOWED} times slower than the machine's.\n`,
);
print(
  markdownTable(
    [
      '',
      'bits',
      'ids a millisecond',
      'made',
      'repeated',
      'refused',
      'longest call, ms of that clock',
      'so it',
    ],
    askings.map((asked) => {
      const { name, layout, perMs } = asked.candidate;
      const counts = [asked.made, asked.repeated, asked.refused].map(grouped);
      return [
        name,
        layout,
        perMs === undefined ? 'no limit' : grouped(perMs),
        ...counts,
        asked.longestMs.toFixed(2),
        outcome(asked),
      ];
    }),
  ),
);

const peers = speeds.filter(({ contestant }) => contestant.whose === "a peer's");
const fastest = peers.reduce((a, b) => (b.bestNs < a.bestNs ? b : a));
const promises: readonly (readonly [string, number, 'least' | 'most', number])[] = [
  [`the fastest peer (${fastest.contestant.name}) / next()`, fastest.bestNs / nextNs, 'least', 3],
  ['next() / the floor', nextNs / floorNs, 'most', 2],
  ['next() / fill()', nextNs / fillNs, 'least', 5],
  [
    'ids of ours that repeat',
    askings.reduce((sum, { candidate, repeated }) => sum + (isOurs(candidate.name) ? repeated : 0), 0),
    'most',
    0,
  ],
  ...limits.map(
    ({ name, measured, perSecond }) =>
      [`${name}: measured / arithmetic`, measured / perSecond, 'most', 1.05] as const,
  ),
];
print('');
for (const [what, value, side, bound] of promises) {
  const kept = side === 'least' ? value >= bound : value <= bound;
  if (!kept) process.exitCode = 1;
  print(`${kept ? 'ok  ' : 'FAIL'}  ${what}: ${value.toFixed(2)}, at ${side} ${bound}`);
}

function isOurs(name: string): boolean {
  return name.startsWith('nodelease');
}
