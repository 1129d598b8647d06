import { h } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { ShardsMember, ShardsReport } from '../../../node/wire/cluster-snapshot.js';
import type { ClusterModel } from '../model/cluster-model.js';
import { counted } from '../model/format.js';
import { bad, chip, memo, note, panel, quiet } from '../page/ui.js';
import { cellsPath, partsOf, shardText } from './shards-model.js';

/** More shards than this have no room for the node id of their owner. */
const MAX_NAMED = 256;
const CELL = 'h9v9h-9z';
const CORNER = 'm9 3v6h-6z';
const CROSS = 'm2 2l5 5m0 -5l-5 5';

interface ShardsProps {
  readonly map: ShardsReport;
  readonly model: ClusterModel;
}

/** Who owns which shard; nothing for a cluster without shards. */
export function shardsPanel(model: ClusterModel) {
  const map = model.hello?.shards;
  return map && h(ShardsPanel, { map, model });
}

/** A cell for each shard, in its owner's colour. */
function ShardsPanel({ map, model }: ShardsProps) {
  // A tenure that another one has followed is over.
  const leaseOf = ({ id, version }: ShardsMember) => {
    const seen = model.node(id);
    if (seen === undefined) return 'not known';
    const { node, state } = model.look(seen);
    return state === 'held' && node.version > version ? 'replaced' : state;
  };
  const { members, shards, epoch, problem } = map;
  const [cursor, setCursor] = useState(-1);
  const { owners, moving, orphaned, failing } = useMemo(() => partsOf(map), [map]);
  const columns = Math.ceil(Math.sqrt(shards.length * (document.documentElement.clientWidth < 700 ? 1 : 4)));
  const size = `0 0 ${columns * 10} ${Math.ceil(shards.length / columns) * 10}`;
  const current = owners.find(({ shards: own }) => own.includes(cursor));
  const move = (shard: number) => shard >= 0 && shard < shards.length && setCursor(shard);
  const path = (kind: string, found: readonly number[], figure = CELL, style?: object) =>
    h('path', { class: kind, d: cellsPath(found, columns, figure), style });
  const drawCells = () => [
    owners.map(({ member, shards: own }) => path('owned', own, CELL, color(member))),
    path('moving', moving, CORNER),
    path('orphaned', [...orphaned, ...failing], CROSS),
    shards.length <= MAX_NAMED &&
      shards.map(([owner], shard) => {
        const [x, y] = [(shard % columns) * 10 + 4.5, Math.floor(shard / columns) * 10 + 5.5];
        return h('text', { x, y }, members[owner]?.id);
      }),
  ];
  const onPointer = ({ currentTarget, clientX, clientY }: PointerEvent) => {
    const { left, top, width } = (currentTarget as Element).getBoundingClientRect();
    const cell = (at: number) => Math.floor((at / width) * columns);
    move(cell(clientY - top) * columns + cell(clientX - left));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
    const step = steps[event.key as keyof typeof steps];
    if (!step || event.altKey || event.metaKey) return;
    event.preventDefault();
    move(cursor < 0 ? 0 : cursor + step);
  };
  const drawOwners = () =>
    owners.map(({ member, shards: own }) => {
      const lease = leaseOf(member);
      const width = `${(own.length / (owners[0]?.shards.length || 1)) * 100}%`;
      const bar = h('i', { class: 'share', style: { width } });
      const name = h('b', null, `node ${member.id}`);
      const limit = map.limits.find(([of]) => members[of] === member)?.[1];
      const takes = limit !== undefined && bad(`starts failed: takes ${limit} at most`);
      const state = lease !== 'held' && bad(lease);
      return h(
        'li',
        null,
        h(
          'button',
          {
            type: 'button',
            class: 'owner',
            style: color(member),
            'aria-pressed': member === current?.member,
            onClick: () => move(own[0] ?? -1),
          },
          name,
          bar,
          own.length,
          state,
          takes,
        ),
      );
    });
  const label = 'Shards. Arrow keys lead from shard to shard.';
  const text = cursor < 0 ? 'Point at a shard, or press arrow keys.' : shardText(map, cursor, leaseOf);
  return panel(
    'shards',
    'Shards',
    [
      moving.length > 0 && chip('moving', `${moving.length} moving`),
      failing.length > 0 && chip('orphaned', `${failing.length} not started`),
      orphaned.length > 0 && chip('orphaned', `${orphaned.length} without an owner`),
      note(`${counted(shards.length, 'shard')} · epoch ${epoch}`),
    ],
    problem && quiet(bad(`shards.json ${problem}: nodelease init --repair mends it.`)),
    h(
      'div',
      { class: 'shard-map', role: 'application', tabIndex: 0, 'aria-label': label, onKeyDown },
      h(
        'svg',
        { viewBox: size, 'aria-hidden': 'true', onPointerMove: onPointer, onPointerDown: onPointer },
        memo(drawCells, [map, columns]),
        memo(() => current && path('current', current.shards), [current, columns]),
        cursor >= 0 && path('at', [cursor]),
      ),
    ),
    h('p', { id: 'shards-cursor', role: 'status' }, text),
    h('ol', { class: 'owners' }, memo(drawOwners, [map, current, ...members.map(leaseOf)])),
  );
}

/** Owners differ in their hue, and neighbours in their lightness too. */
function color({ id }: ShardsMember): object {
  return { '--hue': `${(id * 137.5) % 360}deg`, '--step': id % 3 };
}
