import { SettingError } from './setting-error.js';

/** How many tasks may run while a service replaces them, in percent of the desired count, as ECS reads it. */
export interface DeploymentWindow {
  /** ECS rounds up: it keeps at least `ceil(desired × percent / 100)` healthy tasks. */
  readonly minHealthyPercent: number;
  /** ECS rounds down: it starts at most `floor(desired × percent / 100)` tasks. */
  readonly maxHealthyPercent: number;
  /** How many tasks more than desired may run at once. */
  readonly surge: number;
}

/** More node ids than this do not fit into unique ids. */
const MOST_NODES = 65_528;

/**
 * How a service replaces its tasks so that no more of them run at once than there are node ids. With spare
 * ids the new tasks start first, as many at once as there are ids for. Without, an old task has to end before
 * the new one gets its id: if ECS started the new ones first, they would wait for ids that the old ones keep
 * until the new ones are healthy, and the deployment would stand still.
 *
 * What is NOT guaranteed: an id for every task at once. A task that is being stopped counts no more for ECS
 * and keeps its id until it has ended: its successor may wait that long. A task that died without releasing
 * keeps its id for `duration + grace`.
 *
 * @throws {@link SettingError} when there are fewer ids than tasks
 */
export function deploymentWindow(desiredCount: number, nodes: number): DeploymentWindow {
  if (!Number.isInteger(nodes) || nodes < 1 || nodes > MOST_NODES)
    throw new SettingError('nodes', nodes, `a whole number from 1 to ${MOST_NODES}`);
  if (!Number.isInteger(desiredCount) || desiredCount < 1)
    throw new SettingError('desiredCount', desiredCount, 'a whole number from 1');
  if (desiredCount > nodes) {
    throw new SettingError(
      'desiredCount',
      desiredCount,
      `at most ${nodes}, the number of node ids (the other tasks would wait for one for ever)`,
    );
  }
  const most = desiredCount + Math.min(desiredCount, nodes - desiredCount);
  const tasksAt = (percent: number) => Math.floor((desiredCount * percent) / 100);
  const ample = Math.ceil((most * 100) / desiredCount);
  const maxHealthyPercent = tasksAt(ample) > most ? ample - 1 : ample;
  const surge = tasksAt(maxHealthyPercent) - desiredCount;
  if (surge > 0) return { minHealthyPercent: 100, maxHealthyPercent, surge };
  return {
    minHealthyPercent: Math.floor(((desiredCount - 1) * 100) / desiredCount),
    maxHealthyPercent: 100,
    surge: 0,
  };
}
